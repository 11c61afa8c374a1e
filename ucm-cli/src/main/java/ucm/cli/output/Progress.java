package ucm.cli.output;

import java.io.Console;
import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One line on the terminal that shows how far long work is. Silent when the output is no terminal.
 * Used by one thread.
 */
public final class Progress implements AutoCloseable {

  private static final long MIN_INTERVAL_NANOS = 100_000_000;
  private static final int BAR_WIDTH = 30;
  private static final String CLEAR_LINE = "\r\u001B[K";

  // How many lines are shown: a log line clears them first.
  private static final AtomicInteger SHOWN = new AtomicInteger();

  private final PrintStream terminal = System.err;
  private final boolean shown;
  private final String what;
  private long total;
  private boolean closed;
  private long lastShown = System.nanoTime() - MIN_INTERVAL_NANOS;

  /** Begins work of so many steps; 0 when not known. */
  public Progress(String what, long total) {
    this.shown = isTerminal();
    this.what = what;
    this.total = total;
    if (shown) {
      SHOWN.incrementAndGet();
    }
  }

  /** Whether the command is used at a terminal. */
  // Null where standard input or output is no terminal and the image lacks jdk.internal.le.
  @SuppressWarnings("SystemConsoleNull")
  public static boolean isTerminal() {
    Console console = System.console();
    return console != null && console.isTerminal();
  }

  /** What a line on the standard error begins with, so that it stands alone while progress is shown. */
  public static String clearing() {
    return SHOWN.get() > 0 ? CLEAR_LINE : "";
  }

  /** The same when it was found out meanwhile how many steps there are. */
  public void at(long done, long steps) {
    total = steps;
    at(done);
  }

  public void at(long done) {
    at(done, total > 0 ? Math.min(1, (double) done / total) : -1);
  }

  /** The same when the share done, 0 to 1, is known by other means than steps. */
  public void at(long done, double share) {
    long now = System.nanoTime();
    if (!shown || now - lastShown < MIN_INTERVAL_NANOS) {
      return;
    }
    lastShown = now;
    terminal.print(CLEAR_LINE + text(what, done, total, share));
    terminal.flush();
  }

  /** What is shown: a bar and the share where they are known, and the steps done. */
  public static String text(String what, long done, long total, double share) {
    StringBuilder line = new StringBuilder(what).append(' ');
    if (share >= 0) {
      int filled = (int) (BAR_WIDTH * share);
      line.append('[').append("#".repeat(filled)).append(" ".repeat(BAR_WIDTH - filled));
      line.append("] ");
    }
    line.append(done);
    if (total > 0) {
      line.append('/').append(total);
    } else if (share >= 0) {
      line.append(", ").append((int) (100 * share)).append('%');
    }
    return line.toString();
  }

  @Override
  public void close() {
    if (shown && !closed) {
      closed = true;
      SHOWN.decrementAndGet();
      terminal.print(CLEAR_LINE);
      terminal.flush();
    }
  }
}
