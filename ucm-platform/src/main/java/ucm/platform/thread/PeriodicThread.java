package ucm.platform.thread;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Does something at intervals, on a thread of its own, so that a hang holds up nothing else. */
public final class PeriodicThread {

  private final Thread.Builder newThread;
  private final long intervalNanos;
  private final Runnable action;

  // Guarded by this.
  private boolean closed;
  private @Nullable Thread thread;

  /**
   * Starts no thread yet.
   *
   * @param newThread makes the thread
   * @param action must not throw
   */
  public PeriodicThread(Thread.Builder newThread, long intervalNanos, Runnable action) {
    this.newThread = newThread;
    this.intervalNanos = intervalNanos;
    this.action = action;
  }

  /** Starts; it is done for the first time after one interval. */
  public synchronized void start() {
    thread = newThread.start(this::run);
  }

  private void run() {
    try {
      while (sleep()) {
        action.run();
      }
    } catch (InterruptedException e) {
      // Only stop interrupts this thread.
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

  /** Does it no more; what is under way goes on. */
  public synchronized void stop() {
    closed = true;
    notifyAll();
  }

  /** Waits for the thread; false when it still runs. */
  public boolean join(Duration timeout) throws InterruptedException {
    Thread running;
    synchronized (this) {
      running = thread;
    }
    return running == null || running.join(timeout);
  }
}
