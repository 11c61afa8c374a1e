package ucm.store.file.lookup;

import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Lets who waits for a look-up stay awake for a moment before it sleeps, as to be woken takes longer than
 * most answers. Where that was in vain, because the file system is slow or other processes have all
 * processors, the next ones sleep at once: one, then three, then seven, and so on. Thread-safe.
 */
final class Wakefulness {

  private static final long AWAKE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final int MOST_ASLEEP = 255;

  // Guarded by this. How many sleep at once after the last one that stayed awake, and still are to.
  private int asleep;
  private int left;

  /**
   * Stays awake until something is so, if that may help; lets no other thread go first, which may keep the
   * processor for long.
   */
  void stay(BooleanSupplier isSo) {
    if (!mayHelp()) {
      return;
    }
    long begin = System.nanoTime();
    while (!isSo.getAsBoolean() && System.nanoTime() - begin < AWAKE_NANOS) {
      Thread.onSpinWait();
    }
    note(isSo.getAsBoolean());
  }

  private synchronized boolean mayHelp() {
    if (left == 0) {
      return true;
    }
    left--;
    return false;
  }

  private synchronized void note(boolean hasHelped) {
    asleep = hasHelped ? 0 : Math.min(2 * asleep + 1, MOST_ASLEEP);
    left = asleep;
  }
}
