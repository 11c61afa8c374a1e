package ucm.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
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
import ucm.lite.trace.TraceFormat;
import ucm.lite.trace.TraceVisitor;

/** {@code ucm trace}: what recorded traffic says about a cache. */
@Command(
    name = "trace",
    description = "Analyses, replays and edits traces of requests.",
    subcommands = {
      AnalyzeCommand.class,
      TiersCommand.class,
      StatCommand.class,
      ReplayCommand.class,
      GenerateCommand.class
    })
final class TraceCommand extends CliCommand {

  @Command(
      name = "merge",
      description = {
        "Writes the requests of several traces as one, in the order of time and in the format of"
            + " --to; also sorts a single one.",
        "Equal ids are equal blocks, as in traces of several engines of one deployment. Ids of JSON"
            + " formats are written as 0, 1, 2, ... in the order first seen, because UCM's do not"
            + " fit; UCM lines have full blocks only."
      })
  void merge(
      @Mixin TraceInputOptions inputs,
      @Mixin TraceOutputOptions output,
      @Option(names = "--align", description = "time begins at 0") boolean align) {
    boolean renumber = output.format() != TraceFormat.UCM;
    output.write(writer -> write(inputs, align, renumber ? TraceEdits.renumbered(writer) : writer));
  }

  @Command(
      name = "anonymize",
      description = {
        "Writes a trace as merge does, without what could identify anyone: block ids become 0, 1,"
            + " 2, ... in the order first seen, request ids the place of the request, and time"
            + " begins at 0.",
        "Lengths, gaps and which prompts share a prefix stay: they are what an analysis needs."
      })
  void anonymize(@Mixin TraceInputOptions inputs, @Mixin TraceOutputOptions output) {
    output.write(writer -> write(inputs, /* align= */ true, TraceEdits.anonymized(writer)));
  }

  private static void write(TraceInputOptions inputs, boolean align, TraceVisitor to) {
    try (TraceSorter sorter = new TraceSorter(align)) {
      inputs.read(sorter);
      sorter.writeTo(to);
    }
  }
}
