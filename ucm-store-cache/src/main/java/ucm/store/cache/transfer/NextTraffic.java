package ucm.store.cache.transfer;

import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Counts the next stage's tasks that point into the pool, so that its memory outlives them. */
final class NextTraffic {

  // Guarded by this.
  private int open;
  private boolean closed;
  private @Nullable Runnable whenNone;

  /** A task is about to be handed to the next stage; false when that must not be any more. */
  synchronized boolean begin() {
    open += closed ? 0 : 1;
    return !closed;
  }

  /** A task has completed, and its slots are given back. */
  void end() {
    Runnable action;
    synchronized (this) {
      if (--open > 0) {
        return;
      }
      notifyAll();
      action = whenNone;
      whenNone = null;
    }
    if (action != null) {
      action.run();
    }
  }

  /** Waits for so many nanoseconds until no task is open; says how many are. */
  synchronized int awaitNone(long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    for (long left = nanos; open > 0 && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return open;
  }

  /** Lets no task begin, and runs an action when none is open: now, or when the last one ends. */
  void close(Runnable action) {
    synchronized (this) {
      closed = true;
      if (open > 0) {
        whenNone = action;
        return;
      }
    }
    action.run();
  }
}
