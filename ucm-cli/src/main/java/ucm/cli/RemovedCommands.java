package ucm.cli;

import java.util.Map;
import java.util.Optional;

/** Commands of earlier versions, by their first two words, and what does their work now. */
final class RemovedCommands {

  private static final Map<String, String> INSTEAD =
      Map.of(
          "bench gpu",
          "`tools/gpu/run copies` measures what an engine's worker saves and loads on a GPU",
          "bench serve",
          "measure with an engine of your own: tools/engines/run for vLLM, tools/gpu/run on a GPU",
          "trace convert",
          "`ucm trace merge` reads each format and writes each (--to)");

  private RemovedCommands() {}

  /** One line that says what replaces the command; empty when it was not removed. */
  static Optional<String> replacement(String... args) {
    if (args.length < 2) {
      return Optional.empty();
    }
    String command = args[0] + " " + args[1];
    return Optional.ofNullable(INSTEAD.get(command))
        .map(instead -> "there is no `ucm " + command + "` any more: " + instead);
  }
}
