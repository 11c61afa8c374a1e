package ucm.cli.serve;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.JsonNode;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;

/** {@code ucm serve reload}: new values of keys that may change while engines run. */
@Command(
    name = "reload",
    description = {
      "Has the engines of a configuration file take new values from it, those of keys that may"
          + " change while they run. What may not is named, and stays as it is.",
      "Exit code 1 when not all is in force, 2 when the file is wrong, so that nothing changed."
    })
final class ServeReloadCommand extends DaemonCommand {

  @Parameters(
      paramLabel = "FILE",
      description = "the YAML file, at the path by which the engines were given it")
  private Path file = Path.of("");

  @Override
  public Integer call() {
    String name = file.toAbsolutePath().normalize().toString();
    String yaml;
    try {
      yaml = Files.readString(file);
    } catch (IOException e) {
      throw new UsageException("cannot read " + file + ": " + FileFault.of(e));
    }
    JsonNode answer = ask(client -> client.reload(name, yaml));
    print(() -> answer, () -> show(answer));
    return exitCode(answer);
  }

  private void show(JsonNode answer) {
    String name = answer.path("configuration").asString();
    if (answer.path("engines").isEmpty()) {
      String others =
          String.join(
              ", ",
              answer.path("other_configurations").valueStream().map(JsonNode::asString).toList());
      say(
          "no engine here has the configuration %s; %s"
              .formatted(
                  name,
                  others.isEmpty() ? "no engine is connected" : "those connected have " + others));
      return;
    }
    for (JsonNode engine : answer.path("engines")) {
      String prefix = engine.path("engine").asString() + ": ";
      if (engine.path("taken").isEmpty() && engine.path("not_taken").isEmpty()) {
        say(prefix + "nothing has changed");
      }
      for (Map.Entry<String, JsonNode> key : engine.path("taken").properties()) {
        say(prefix + key.getKey() + " is " + change(key.getValue()));
      }
      for (Map.Entry<String, JsonNode> key : engine.path("not_taken").properties()) {
        say(
            prefix
                + "%s is not %s: it %s"
                    .formatted(
                        key.getKey(),
                        change(key.getValue()),
                        key.getValue().path("reason").asString()));
      }
    }
  }

  private static String change(JsonNode values) {
    return "%s, was %s".formatted(shown(values.path("to")), shown(values.path("from")));
  }

  private static String shown(JsonNode value) {
    return value.isNull() ? "unset" : value.isString() ? value.asString() : value.toString();
  }
}
