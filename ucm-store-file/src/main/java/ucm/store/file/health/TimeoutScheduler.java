package ucm.store.file.health;

import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.StoreKind;

/**
 * The thread of a store that keeps time: does things at intervals. What it runs must not wait for a file
 * system. Thread-safe.
 */
public final class TimeoutScheduler implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(TimeoutScheduler.class);
  private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final OwnThreads own;
  private final ScheduledThreadPoolExecutor thread;

  /** Starts no thread yet. */
  public TimeoutScheduler(StoreKind kind) {
    own = kind.threads("timeouts");
    thread = new ScheduledThreadPoolExecutor(1, own, (_, _) -> {});
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /** Does something at intervals of 10 ms or more, for the first time after one of them. */
  public void every(long nanos, Runnable action) {
    long interval = Math.max(nanos, SHORTEST_NANOS);
    ScheduledFuture<?> _ =
        thread.scheduleWithFixedDelay(guarded(action), interval, interval, TimeUnit.NANOSECONDS);
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
