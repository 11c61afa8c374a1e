package ucm.cli.trace;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.cli.output.CliCommand;
import ucm.lite.edit.TraceEdits;

/** {@code ucm trace anonymize}: a trace that can be given away. */
@Command(
    name = "anonymize",
    description = {
      "Writes a trace without what could identify anyone: block ids become 0, 1, 2, ... in the"
          + " order first seen, request ids the place of the request, and time begins at 0.",
      "Lengths, gaps and which prompts share a prefix stay: they are what an analysis needs."
    })
public final class AnonymizeCommand extends CliCommand {

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private TraceOutputOptions output = new TraceOutputOptions();

  @Override
  public void run() {
    output.write(/* renumber= */ false, writer -> inputs.read(TraceEdits.anonymized(writer)));
  }
}
