package ucm.bench;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import ucm.cli.Subcommand;

/** {@code ucm bench}: how fast things are, beside what the machine can do. */
@Command(
    name = "bench",
    description = "Measures the parts of UCM beside the limits of this machine.",
    subcommands = {BenchStoreCommand.class, BenchLayerwiseCommand.class})
public final class BenchCommand implements Subcommand {

  @Spec private CommandSpec spec;

  public BenchCommand() {}

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "name a command: store or layerwise");
  }
}
