package ucm.server.session;

import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Whether the daemon stores what engines bring: it does until it is drained. Thread-safe. */
final class Admission {

  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private volatile boolean closed;

  boolean isClosed() {
    return closed;
  }

  /** From the return on, nothing is admitted (or all is again), and what was admitted before has begun. */
  void close(boolean closes) {
    lock.writeLock().lock();
    try {
      closed = closes;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Begins to store something, which must not take long; false when it is not admitted. */
  boolean begin(Runnable start) {
    lock.readLock().lock();
    try {
      if (!closed) {
        start.run();
      }
      return !closed;
    } finally {
      lock.readLock().unlock();
    }
  }
}
