package ucm.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.capacity.TiersCommand;
import ucm.cli.output.CliCommand;
import ucm.cli.output.UsageException;
import ucm.cli.replay.ReplayCommand;
import ucm.cli.trace.AnalyzeCommand;
import ucm.cli.trace.GenerateCommand;
import ucm.cli.trace.StatCommand;
import ucm.cli.trace.TraceInputOptions;
import ucm.cli.trace.TraceOutputOptions;
import ucm.lite.edit.TraceEdits;
import ucm.lite.edit.TraceMerge;
import ucm.lite.trace.TraceFormat;

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
        "Writes the requests of several traces in the order of time; also sorts a single one.",
        "Equal ids are equal blocks, as in traces of several engines of one deployment; --separate"
            + " is for traces that have nothing to do with each other."
      })
  void merge(
      @Mixin TraceInputOptions inputs,
      @Mixin TraceOutputOptions output,
      @Option(
              names = "--separate",
              description = "equal ids of different inputs are different blocks")
          boolean separate,
      @Option(names = "--align", description = "the time of each input begins at 0")
          boolean align) {
    boolean renumber = !separate && output.format() != TraceFormat.UCM;
    output.write(
        renumber,
        writer -> {
          try (TraceMerge merge = new TraceMerge(separate, align)) {
            inputs.readEach(merge::nextSource, merge);
            merge.writeTo(writer);
          }
        });
  }

  @Command(
      name = "anonymize",
      description = {
        "Writes a trace in the order of time, without what could identify anyone: block ids become"
            + " 0, 1, 2, ... in the order first seen, request ids the place of the request, and"
            + " time begins at 0.",
        "Lengths, gaps and which prompts share a prefix stay: they are what an analysis needs."
      })
  void anonymize(@Mixin TraceInputOptions inputs, @Mixin TraceOutputOptions output) {
    output.write(
        /* renumber= */ false,
        writer -> {
          // The earliest request need not be the first.
          try (TraceMerge merge = new TraceMerge(/* separate= */ false, /* aligned= */ true)) {
            inputs.read(merge);
            merge.writeTo(TraceEdits.anonymized(writer));
          }
        });
  }

  @Command(
      name = "convert",
      description = {
        "Writes the requests of traces in another format, in the order read.",
        "Ids of JSON formats are written as 0, 1, 2, ... in the order first seen, because UCM's do"
            + " not fit; UCM lines have full blocks only."
      })
  void convert(
      @Mixin TraceInputOptions inputs,
      @Mixin TraceOutputOptions output,
      @Option(
              names = "--to-block-tokens",
              paramLabel = "N",
              description =
                  "join blocks to larger ones of so many tokens, a multiple of the trace's")
          int blockTokens) {
    UsageException.when(blockTokens < 0, "--to-block-tokens is above 0; found " + blockTokens);
    boolean renumber = output.format() != TraceFormat.UCM;
    output.write(
        renumber,
        writer -> inputs.read(blockTokens == 0 ? writer : TraceEdits.joined(blockTokens, writer)));
  }
}
