package ucm.cli.trace;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.output.CliCommand;
import ucm.cli.output.UsageException;
import ucm.lite.edit.TraceEdits;
import ucm.lite.trace.TraceFormat;

/** {@code ucm trace convert}: the same requests in another format. */
@Command(
    name = "convert",
    description = {
      "Writes the requests of traces in another format, in the order read.",
      "Ids of JSON formats are written as 0, 1, 2, ... in the order first seen, because UCM's do"
          + " not fit; UCM lines have full blocks only."
    })
public final class ConvertCommand extends CliCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private TraceOutputOptions output = new TraceOutputOptions();

  @Option(
      names = "--to-block-tokens",
      paramLabel = "N",
      description = "join blocks to larger ones of so many tokens, a multiple of the trace's")
  private int blockTokens;

  @Override
  public void run() {
    UsageException.when(blockTokens < 0, "--to-block-tokens is above 0; found " + blockTokens);
    boolean renumber = output.format() != TraceFormat.UCM;
    output.write(
        renumber,
        writer -> inputs.read(blockTokens == 0 ? writer : TraceEdits.joined(blockTokens, writer)));
  }
}
