package ucm.cli.trace;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;
import ucm.lite.edit.TraceEdits;

/** {@code ucm trace anonymize}: a trace that can be given away. */
@Command(
    name = "anonymize",
    description = {
      "Writes a trace without what could identify anyone: block ids become 0, 1, 2, ... in the"
          + " order first seen, request ids the place of the request, and time begins at 0.",
      "Lengths, gaps and which prompts share a prefix stay: they are what an analysis needs."
    })
public final class AnonymizeCommand implements Runnable {

  @Spec private CommandSpec spec;
  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private TraceOutputOptions output = new TraceOutputOptions();

  @Override
  public void run() {
    output.write(
        spec.commandLine().getOut(),
        spec.commandLine().getErr(),
        /* renumber= */ false,
        writer ->
            inputs.read("requests", spec.commandLine().getErr(), TraceEdits.anonymized(writer)));
  }
}
