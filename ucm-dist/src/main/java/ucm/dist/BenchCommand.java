package ucm.dist;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code ucm bench}: how fast things are, beside what the machine can do. */
@Command(
    name = "bench",
    description = "Measures the parts of UCM beside the limits of this machine.",
    subcommands = {
      BenchStoreCommand.class,
      BenchLayerwiseCommand.class,
      BenchPoliciesCommand.class,
      BenchGpuCommand.class,
      BenchServeCommand.class
    })
final class BenchCommand implements Runnable {

  @Spec private CommandSpec spec;

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(), "name a command: store, layerwise, policies, gpu or serve");
  }
}
