package ucm.store.cache.transfer;

import java.time.Duration;

/**
 * Waits of a thread that closes, none of which an interrupt cuts short: what is not ended and freed by
 * then never is. Each is bounded. The thread is interrupted again by {@link #restore}.
 */
final class DeferredInterrupts {

  /** Waits for no longer than it is told. */
  @FunctionalInterface
  interface Wait {

    /**
     * Waits, and may be called again when it was interrupted, which it says by the exception or by the
     * thread's interrupt flag.
     *
     * @return whether what it waits for came in time
     */
    boolean isOver(Duration timeout) throws InterruptedException;
  }

  private boolean interrupted = Thread.interrupted();

  /** Whether the thread was interrupted, before this was made or since. */
  boolean any() {
    return interrupted;
  }

  /** Notes an interrupt. */
  void note() {
    interrupted = true;
  }

  /** Waits for so long at the most; what the wait says in the end. */
  boolean await(Wait wait, Duration timeout) {
    long deadline = System.nanoTime() + timeout.toNanos();
    while (true) {
      long left = Math.max(0, deadline - System.nanoTime());
      boolean over = false;
      boolean cutShort;
      try {
        over = wait.isOver(Duration.ofNanos(left));
        cutShort = Thread.interrupted();
      } catch (InterruptedException e) {
        cutShort = true;
      }
      interrupted |= cutShort;
      if (over || !cutShort) {
        return over;
      }
    }
  }

  /** Interrupts the thread again, if it was. */
  void restore() {
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
