package ucm.cli.serve;

import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;

/** {@code ucm serve log-level}: what the daemon logs. */
@Command(name = "log-level", description = "Says what the daemon logs, or sets it until it ends.")
final class ServeLogLevelCommand extends DaemonCommand {

  @Parameters(
      paramLabel = "LEVEL",
      arity = "0..1",
      defaultValue = "",
      description = "debug, info, warning or error")
  private String level = "";

  @Override
  public void run() {
    JsonNode answer = ask(client -> client.logLevel(level));
    print(
        () -> answer,
        () ->
            say(
                level.isEmpty()
                    ? answer.path("log_level").asString()
                    : "%s, was %s"
                        .formatted(
                            answer.path("log_level").asString(),
                            answer.path("before").asString())));
  }
}
