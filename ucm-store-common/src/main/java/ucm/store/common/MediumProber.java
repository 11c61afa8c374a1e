package ucm.store.common;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Probes one medium at intervals, on a thread of its own: a probe that hangs holds up nobody else. */
final class MediumProber {

  private final String threadName;
  private final long intervalNanos;
  private final Runnable probe;

  // Guarded by this.
  private boolean closed;
  private @Nullable Thread thread;

  /**
   * Starts no thread yet.
   *
   * @param probe must not throw
   */
  MediumProber(String threadName, long intervalNanos, Runnable probe) {
    this.threadName = threadName;
    this.intervalNanos = intervalNanos;
    this.probe = probe;
  }

  /** Starts; the first probe is made after one interval. */
  synchronized void start() {
    thread = Thread.ofPlatform().daemon().name(threadName).start(this::run);
  }

  private void run() {
    try {
      while (sleep()) {
        probe.run();
      }
    } catch (InterruptedException e) {
      // Nobody interrupts this thread but to end it.
      Thread.currentThread().interrupt();
    }
  }

  private synchronized boolean sleep() throws InterruptedException {
    long end = System.nanoTime() + intervalNanos;
    while (!closed) {
      long left = end - System.nanoTime();
      if (left <= 0) {
        return true;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return false;
  }

  /** Begins no further probe. */
  synchronized void stop() {
    closed = true;
    notifyAll();
  }

  /** Waits for the thread; false when it still runs. */
  boolean join(Duration timeout) throws InterruptedException {
    Thread running;
    synchronized (this) {
      running = thread;
    }
    return running == null || running.join(timeout);
  }
}
