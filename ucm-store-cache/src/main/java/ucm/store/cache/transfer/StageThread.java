package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** A thread of the store that waits for something to do, with the lock it waits by. */
abstract class StageThread {

  final ReentrantLock lock = new ReentrantLock();

  /** There may be something to do, or the thread should end. */
  final Condition changed = lock.newCondition();

  /** Whether the thread should end; guarded by lock. */
  boolean closed;

  private final Thread thread;

  /**
   * A thread that is not started yet.
   *
   * @param faults is told when it ends by an error
   */
  StageThread(String name, Thread.UncaughtExceptionHandler faults) {
    thread =
        Thread.ofPlatform()
            .daemon()
            .name(name)
            .uncaughtExceptionHandler(faults)
            .unstarted(this::work);
  }

  /** What the thread does until it is {@link #closed}. */
  abstract void work();

  /** Starts the thread. */
  final void start() {
    thread.start();
  }

  /**
   * Ends the thread, when it has done what it does at the moment.
   *
   * @return whether it ended in time
   */
  final boolean close(Duration timeout) throws InterruptedException {
    lock.lock();
    try {
      closed = true;
      changed.signal();
    } finally {
      lock.unlock();
    }
    return thread.join(timeout);
  }
}
