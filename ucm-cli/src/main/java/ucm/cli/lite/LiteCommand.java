package ucm.cli.lite;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code ucm lite}: engines that run in lite mode. */
@Command(
    name = "lite",
    description = "Looks at engines that count hits without moving a byte (use_lite: true).",
    subcommands = {LiteStatusCommand.class, LiteRunCommand.class})
public final class LiteCommand implements Runnable {

  @Spec private CommandSpec spec;

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "name a command: status or run");
  }
}
