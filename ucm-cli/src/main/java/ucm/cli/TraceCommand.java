package ucm.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.cli.capacity.TiersCommand;
import ucm.cli.output.CliCommand;
import ucm.cli.replay.ReplayCommand;
import ucm.cli.trace.AnalyzeCommand;
import ucm.cli.trace.GenerateCommand;
import ucm.cli.trace.StatCommand;
import ucm.cli.trace.TraceInputOptions;
import ucm.cli.trace.TraceOutputOptions;
import ucm.lite.edit.TraceEdits;
import ucm.lite.edit.TraceSorter;

/** {@code ucm trace}: what recorded traffic says about a cache. */
@Command(
    name = "trace",
    description = "Analyses, replays and makes traces of requests.",
    subcommands = {
      AnalyzeCommand.class,
      TiersCommand.class,
      StatCommand.class,
      ReplayCommand.class,
      GenerateCommand.class
    })
final class TraceCommand extends CliCommand {

  @Command(
      name = "anonymize",
      description = {
        "Writes one trace, or several as one, in the order of time and in the format of --to,"
            + " without what could identify anyone: block ids become 0, 1, 2, ... in the order"
            + " first seen, request ids the place of the request, and time begins at 0.",
        "Lengths, gaps and which prompts share a prefix stay: they are what an analysis needs. UCM"
            + " lines have full blocks only."
      })
  void anonymize(@Mixin TraceInputOptions inputs, @Mixin TraceOutputOptions output) {
    output.write(
        writer -> {
          try (TraceSorter sorter = new TraceSorter()) {
            inputs.read(sorter);
            sorter.writeTo(TraceEdits.anonymized(writer));
          }
        });
  }
}
