package ucm.cli.output;

import java.io.Console;
import java.io.PrintWriter;
import java.util.Locale;
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

  /** Asks on the terminal before blocks are removed, unless the answer is known; goes on when it is yes. */
  // As in Progress: null where a console was asked for and there is none.
  @SuppressWarnings("SystemConsoleNull")
  protected static void confirm(boolean yes, String question) {
    if (yes) {
      return;
    }
    Console console = System.console();
    if (console == null || !console.isTerminal()) {
      throw new UsageException("there is no terminal to ask on: add --yes to remove the blocks");
    }
    String answer = console.readLine("%s", question);
    UsageException.when(
        answer == null || !answer.strip().toLowerCase(Locale.ROOT).matches("y|yes"),
        "nothing was removed");
  }
}
