package ucm.cli.output;

import java.io.Console;
import java.util.Locale;

/** Asks before something is removed. */
public final class Confirmation {

  private Confirmation() {}

  /**
   * Asks on the terminal.
   *
   * @param yes whether the answer is known
   * @param what would be done, for example {@code remove the blocks}
   * @throws UsageException when the answer is no, or there is no terminal
   */
  // As in Progress: null where a console was asked for and there is none.
  @SuppressWarnings("SystemConsoleNull")
  public static void require(boolean yes, String what, String question) {
    if (yes) {
      return;
    }
    Console console = System.console();
    if (console == null || !console.isTerminal()) {
      throw new UsageException("there is no terminal to ask on: add --yes to " + what);
    }
    String answer = console.readLine("%s", question);
    UsageException.when(
        answer == null || !answer.strip().toLowerCase(Locale.ROOT).matches("y|yes"),
        "nothing was removed");
  }
}
