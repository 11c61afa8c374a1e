package ucm.cli.trace;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.output.CliCommand;
import ucm.cli.output.UsageException;
import ucm.lite.edit.TraceEdits;
import ucm.lite.edit.TraceMerge;
import ucm.lite.trace.TraceFormat;

/** The commands of {@code ucm trace} that write what they read, changed. */
public abstract class EditCommands extends CliCommand {
  /** Several traces as one, in the order of time. */
  @Command(
      name = "merge",
      description = {
        "Writes the requests of several traces in the order of time; also sorts a single one.",
        "Equal ids are equal blocks, as in traces of several engines of one deployment; --separate"
            + " is for traces that have nothing to do with each other."
      })
  public void merge(
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

  /** A trace that can be given away. */
  @Command(
      name = "anonymize",
      description = {
        "Writes a trace without what could identify anyone: block ids become 0, 1, 2, ... in the"
            + " order first seen, request ids the place of the request, and time begins at 0.",
        "Lengths, gaps and which prompts share a prefix stay: they are what an analysis needs."
      })
  public void anonymize(@Mixin TraceInputOptions inputs, @Mixin TraceOutputOptions output) {
    output.write(/* renumber= */ false, writer -> inputs.read(TraceEdits.anonymized(writer)));
  }

  /** The same requests in another format. */
  @Command(
      name = "convert",
      description = {
        "Writes the requests of traces in another format, in the order read.",
        "Ids of JSON formats are written as 0, 1, 2, ... in the order first seen, because UCM's do"
            + " not fit; UCM lines have full blocks only."
      })
  public void convert(
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
