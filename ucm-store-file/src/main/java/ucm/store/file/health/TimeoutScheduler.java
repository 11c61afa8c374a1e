package ucm.store.file.health;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends what is past its deadline. Its thread sleeps until the next one may be due, and there is no next one
 * when nothing is under way; it is started by the first request.
 */
public final class TimeoutScheduler implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(TimeoutScheduler.class);
  private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final Thread.Builder builder;
  private final LongSupplier check;

  // Written under the lock of this; these two are read without it on the hot path.
  private volatile boolean planned;
  private volatile long wakeNanos;
  private boolean closed;
  private @Nullable Thread thread;

  /**
   * Starts no thread yet.
   *
   * @param builder makes it
   * @param check ends what is due; returns the nanoseconds until the next run, or {@link
   *     Long#MAX_VALUE} when none is needed
   */
  public TimeoutScheduler(Thread.Builder builder, LongSupplier check) {
    this.builder = builder;
    this.check = check;
  }

  /** Asks for a run in some time, unless one is planned by then: that one finds out what is next. */
  public void checkIn(long nanos) {
    long at = System.nanoTime() + Math.max(nanos, SHORTEST_NANOS);
    if (!planned || at - wakeNanos < 0) {
      plan(at);
    }
  }

  private synchronized void plan(long at) {
    if (closed || (planned && at - wakeNanos >= 0)) {
      return;
    }
    wakeNanos = at;
    planned = true;
    if (thread == null) {
      thread = builder.start(this::run);
    } else {
      notifyAll();
    }
  }

  private void run() {
    try {
      while (sleep()) {
        runCheck();
      }
    } catch (InterruptedException e) {
      // Only close interrupts this thread.
      Thread.currentThread().interrupt();
    }
  }

  /** Waits until a run is due; false when there will be none. */
  private synchronized boolean sleep() throws InterruptedException {
    while (!closed) {
      if (!planned) {
        wait();
        continue;
      }
      long left = wakeNanos - System.nanoTime();
      if (left <= 0) {
        planned = false;
        return true;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return false;
  }

  private void runCheck() {
    try {
      long next = check.getAsLong();
      if (next != Long.MAX_VALUE) {
        checkIn(next);
      }
    } catch (RuntimeException e) {
      LOG.error("{} failed", Thread.currentThread().getName(), e);
    }
  }

  /** Stops the thread. */
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

  /** Stops and joins the thread. */
  @Override
  public void close() {
    stop();
    try {
      if (!join(LONGEST_CLOSE)) {
        LOG.warn("the timeout scheduler of a store still waits for the file system");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
