package ucm.cli.output;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A command, and where it prints. One that only groups others asks for the name of one of them. */
public abstract class CliCommand implements Callable<Integer> {
  @Spec protected CommandSpec spec;

  protected CliCommand() {}

  /** Does the work and returns the exit code. */
  @Override
  public Integer call() throws InterruptedException {
    run();
    return 0;
  }

  /** Does the work of a command that either is done or throws. */
  protected void run() throws InterruptedException {
    String names = String.join(", ", spec.subcommands().keySet());
    throw new ParameterException(spec.commandLine(), "name a command: " + names);
  }

  protected final PrintWriter out() {
    return spec.commandLine().getOut();
  }

  /** Prints a line. */
  protected final void say(String line) {
    out().println(line);
  }

  protected final PrintWriter err() {
    return spec.commandLine().getErr();
  }
}
