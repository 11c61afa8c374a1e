package ucm.store.file.health;

import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.StoreKind;

/**
 * The thread of a store that keeps time: does things at intervals, and checks what may be due, which it
 * does not while nothing is. What it runs must not wait for a file system. Thread-safe.
 */
public final class TimeoutScheduler implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(TimeoutScheduler.class);
  private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final OwnThreads own;
  private final ScheduledThreadPoolExecutor thread;
  private final LongSupplier check;

  private final AtomicBoolean planned = new AtomicBoolean();

  /**
   * Starts no thread yet.
   *
   * @param check does what is due; returns the nanoseconds until the next run, or {@link
   *     Long#MAX_VALUE} when none is needed
   */
  public TimeoutScheduler(StoreKind kind, LongSupplier check) {
    this.check = check;
    own = kind.threads("timeouts");
    thread = new ScheduledThreadPoolExecutor(1, own, (_, _) -> {});
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /** Does something at intervals, for the first time after one of them. */
  public void every(long nanos, Runnable action) {
    ScheduledFuture<?> _ =
        thread.scheduleWithFixedDelay(guarded(action), nanos, nanos, TimeUnit.NANOSECONDS);
  }

  /** Asks for a check in some time, unless one is planned: that one finds out what is next. */
  public void checkIn(long nanos) {
    if (!planned.get() && planned.compareAndSet(false, true)) {
      ScheduledFuture<?> _ =
          thread.schedule(
              guarded(this::check), Math.max(nanos, SHORTEST_NANOS), TimeUnit.NANOSECONDS);
    }
  }

  private void check() {
    planned.set(false);
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
    if (!own.join(LONGEST_CLOSE)) {
      LOG.warn("the timeout scheduler of a store still waits for the file system");
    }
  }
}
