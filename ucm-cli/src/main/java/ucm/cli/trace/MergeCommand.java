package ucm.cli.trace;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.output.CliCommand;
import ucm.lite.edit.TraceMerge;
import ucm.lite.trace.TraceFormat;

/** {@code ucm trace merge}: several traces as one, in the order of time. */
@Command(
    name = "merge",
    description = {
      "Writes the requests of several traces in the order of time; also sorts a single one.",
      "Equal ids are equal blocks, as in traces of several engines of one deployment; --separate is"
          + " for traces that have nothing to do with each other."
    })
public final class MergeCommand extends CliCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private TraceOutputOptions output = new TraceOutputOptions();

  @Option(names = "--separate", description = "equal ids of different inputs are different blocks")
  private boolean separate;

  @Option(names = "--align", description = "the time of each input begins at 0")
  private boolean align;

  @Override
  public void run() {
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
}
