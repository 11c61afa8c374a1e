package ucm.cli.serve;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import ucm.cli.output.Confirmation;
import ucm.cli.output.Progress;

/** {@code ucm serve clear}: removes all blocks. */
@Command(
    name = "clear",
    description = {
      "Removes all blocks of the pipelines that the daemon has open, from memory and from storage"
          + " directories, those that other nodes stored there included. Engines go on, and find"
          + " nothing.",
      "Exit code 1 when some blocks are left. Ctrl-C stops it; what is removed then is gone."
    })
final class ServeClearCommand extends DaemonCommand {

  @Option(names = "--yes", description = "do not ask")
  private boolean yes;

  @Override
  public Integer call() {
    Confirmation.require(
        yes, "remove the blocks", "remove all blocks of the engines' pipelines? [y/N] ");
    JsonNode answer;
    try (Progress progress = new Progress("removed blocks", 0)) {
      answer = ask(client -> client.clear(showing(progress)));
    }
    print(() -> answer, () -> show(answer));
    return exitCode(answer);
  }

  private void show(JsonNode answer) {
    say(
        "removed %s blocks of %s pipelines"
            .formatted(answer.path("removed_blocks"), answer.path("pipelines").size()));
    if (answer.path("left_blocks").asLong() > 0) {
      say(answer.path("left_blocks") + " could not be removed: see the log of the daemon");
    }
    for (JsonNode stage : answer.path("kept_stages")) {
      say(
          stage.asString()
              + " cannot be emptied: its store neither lists its blocks nor is Clearable");
    }
  }
}
