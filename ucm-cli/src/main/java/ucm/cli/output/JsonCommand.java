package ucm.cli.output;

import java.util.function.Supplier;
import picocli.CommandLine.Option;

/** A command that prints what it found for people, or as JSON. */
public abstract class JsonCommand extends CliCommand {
  @Option(names = "--json", description = "print JSON instead of text")
  protected boolean json;

  protected JsonCommand() {}

  /** Prints one of the two, and makes no other. */
  protected final void print(Supplier<?> data, Runnable text) {
    if (json) {
      FormatOptions.json(out(), data.get());
    } else {
      text.run();
    }
  }
}
