package ucm.dist;

import java.io.Console;
import java.io.PrintStream;

/**
 * One line on the terminal that shows how far long work is. Silent when the output is no terminal.
 * Used by one thread.
 */
final class Progress implements AutoCloseable {

  private static final long MIN_INTERVAL_NANOS = 100_000_000;
  private static final int BAR_WIDTH = 30;
  private static final String CLEAR_LINE = "\r\u001B[K";

  private final PrintStream terminal = System.err;
  private final boolean shown;
  private final String what;
  private long total;
  private long lastShown = System.nanoTime() - MIN_INTERVAL_NANOS;

  /**
   * Begins.
   *
   * @param total how many steps; 0 when not known
   */
  // Null where standard input or output is no terminal and the image lacks jdk.internal.le.
  @SuppressWarnings("SystemConsoleNull")
  Progress(String what, long total) {
    Console console = System.console();
    this.shown = console != null && console.isTerminal();
    this.what = what;
    this.total = total;
  }

  /** The same when it was found out meanwhile how many steps there are. */
  void at(long done, long steps) {
    total = steps;
    at(done);
  }

  void at(long done) {
    long now = System.nanoTime();
    if (!shown || now - lastShown < MIN_INTERVAL_NANOS) {
      return;
    }
    lastShown = now;
    StringBuilder line = new StringBuilder(CLEAR_LINE).append(what).append(' ');
    if (total > 0) {
      int filled = (int) (BAR_WIDTH * Math.min(done, total) / total);
      line.append('[').append("#".repeat(filled)).append(" ".repeat(BAR_WIDTH - filled));
      line.append("] ").append(done).append('/').append(total);
    } else {
      line.append(done);
    }
    terminal.print(line);
    terminal.flush();
  }

  @Override
  public void close() {
    if (shown) {
      terminal.print(CLEAR_LINE);
      terminal.flush();
    }
  }
}
