package ucm.store.cache.transfer;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** Counts the next stage's tasks that point into the pool, so that its memory outlives them. */
public final class NextTraffic {

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition none = lock.newCondition();
  // Guarded by lock.
  private int open;
  private boolean closed;
  private @Nullable Runnable whenNone;

  /** A task is about to be handed to the next stage; false when that must not be any more. */
  boolean begin() {
    lock.lock();
    try {
      if (closed) {
        return false;
      }
      open++;
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** A task has completed, and its slots are given back. */
  void end() {
    Runnable action = null;
    lock.lock();
    try {
      if (--open == 0) {
        none.signalAll();
        action = whenNone;
        whenNone = null;
      }
    } finally {
      lock.unlock();
    }
    if (action != null) {
      action.run();
    }
  }

  /** Waits for so many nanoseconds until no task is open; says how many are. */
  public int awaitNone(long nanos) throws InterruptedException {
    long remaining = nanos;
    lock.lock();
    try {
      while (open > 0 && remaining > 0) {
        remaining = none.awaitNanos(remaining);
      }
      return open;
    } finally {
      lock.unlock();
    }
  }

  /** Lets no task begin, and runs an action when none is open: now, or when the last one ends. */
  void close(Runnable action) {
    lock.lock();
    try {
      closed = true;
      if (open > 0) {
        whenNone = action;
        return;
      }
    } finally {
      lock.unlock();
    }
    action.run();
  }
}
