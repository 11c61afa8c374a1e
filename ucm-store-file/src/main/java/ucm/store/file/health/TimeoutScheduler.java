package ucm.store.file.health;

import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread of a store that keeps time: does things at intervals, and ends what is past its deadline. The
 * deadlines are checked when the next one may be due, and not at all when nothing is under way.
 * What it runs must not wait for a file system. Thread-safe.
 */
public final class TimeoutScheduler implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(TimeoutScheduler.class);
  private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final AtomicReference<@Nullable Thread> running = new AtomicReference<>();
  private final ScheduledThreadPoolExecutor thread;
  private final LongSupplier check;

  // Written under the lock of this; both are read without it on the hot path.
  private volatile boolean planned;
  private volatile long wakeNanos;

  /**
   * Starts no thread yet.
   *
   * @param builder makes it
   * @param check ends what is due; returns the nanoseconds until the next run, or {@link
   *     Long#MAX_VALUE} when none is needed
   */
  public TimeoutScheduler(Thread.Builder builder, LongSupplier check) {
    this.check = check;
    thread =
        new ScheduledThreadPoolExecutor(1, work -> made(builder.unstarted(work)), (_, _) -> {});
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  private Thread made(Thread made) {
    running.set(made);
    return made;
  }

  /** Does something at intervals, for the first time after one of them. */
  public void every(long nanos, Runnable action) {
    ScheduledFuture<?> _ =
        thread.scheduleWithFixedDelay(guarded(action), nanos, nanos, TimeUnit.NANOSECONDS);
  }

  /** Asks for a check in some time, unless one is planned by then: that one finds out what is next. */
  public void checkIn(long nanos) {
    long at = System.nanoTime() + Math.max(nanos, SHORTEST_NANOS);
    if (!planned || at - wakeNanos < 0) {
      plan(at);
    }
  }

  private synchronized void plan(long at) {
    if (!planned || at - wakeNanos < 0) {
      wakeNanos = at;
      planned = true;
      ScheduledFuture<?> _ =
          thread.schedule(guarded(() -> check(at)), at - System.nanoTime(), TimeUnit.NANOSECONDS);
    }
  }

  private void check(long at) {
    synchronized (this) {
      if (wakeNanos != at) {
        // Another one was planned before this, and has been made.
        return;
      }
      planned = false;
    }
    long next = check.getAsLong();
    if (next != Long.MAX_VALUE) {
      checkIn(next);
    }
  }

  private static Runnable guarded(Runnable action) {
    return () -> {
      Thread thread = Thread.currentThread();
      try {
        action.run();
      } catch (RuntimeException e) {
        LOG.error("{} failed", thread.getName(), e);
      } catch (Error e) {
        // The executor would keep it to itself.
        thread.getUncaughtExceptionHandler().uncaughtException(thread, e);
        throw e;
      }
    };
  }

  /** Stops and joins the thread. */
  @Override
  public void close() {
    thread.shutdown();
    Thread last = running.get();
    try {
      // The executor has ended a moment before its thread has.
      if (last != null && !last.join(LONGEST_CLOSE)) {
        LOG.warn("the timeout scheduler of a store still waits for the file system");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
