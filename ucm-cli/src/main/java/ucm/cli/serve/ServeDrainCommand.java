package ucm.cli.serve;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;

/** {@code ucm serve drain}: nothing more is stored, and what was brought is. */
@Command(
    name = "drain",
    description = {
      "Has the daemon store no more blocks, and waits until those that engines have brought are"
          + " stored. Engines go on: they load what there is, and what they save is given up.",
      "Exit code 1 when some blocks are not stored. With --undo blocks are stored again."
    })
final class ServeDrainCommand extends DaemonCommand {

  @Option(
      names = "--timeout",
      paramLabel = "SECONDS",
      defaultValue = "120",
      description = "how long to wait (default: ${DEFAULT-VALUE})")
  private int seconds;

  @Option(names = "--undo", description = "have it store blocks again")
  private boolean undo;

  @Override
  public Integer call() {
    UsageException.when(seconds < 0, "--timeout is 0 or more seconds; found " + seconds);
    JsonNode answer;
    try (Progress progress = new Progress("saves", 0)) {
      answer = ask(client -> client.drain(!undo, seconds, showing(progress)));
    }
    print(() -> answer, () -> show(answer));
    return undo ? 0 : exitCode(answer);
  }

  private void show(JsonNode answer) {
    if (undo) {
      say("blocks are stored again");
    } else if (exitCode(answer) == 0) {
      say("drained: all that engines brought is stored, and nothing more will be");
    } else {
      say(
          "drained, but %s saves and %s blocks are still under way after %s s, and %s blocks could not be stored: see the log of the daemon, or ask again"
              .formatted(
                  answer.path("saves_left"),
                  answer.path("pending_blocks"),
                  seconds,
                  answer.path("failed_blocks")));
    }
  }
}
