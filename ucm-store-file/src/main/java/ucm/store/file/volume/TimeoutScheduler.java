package ucm.store.file.volume;

import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;

/** Does things at intervals, on threads of its own. Thread-safe. */
public final class TimeoutScheduler implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(TimeoutScheduler.class);
  private static final long SHORTEST_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private static final int CHECKS_PER_TIMEOUT = 4;

  private final String name;
  private final OwnThreads own;
  private final ScheduledThreadPoolExecutor threads;

  /** The thread of a store that keeps time: what it runs must not wait for a file system. */
  public TimeoutScheduler(StoreKind kind) {
    this(kind, "timeouts", 1);
  }

  /** With as many threads as things that are done; starts none yet. */
  public TimeoutScheduler(StoreKind kind, String role, int count) {
    name = kind.name() + " " + role;
    own = kind.threads(role);
    threads = new ScheduledThreadPoolExecutor(count, own, (_, _) -> {});
    threads.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /** Does something at intervals of 10 ms or more, for the first time after one of them. */
  public void every(long nanos, Runnable action) {
    long interval = Math.max(nanos, SHORTEST_NANOS);
    ScheduledFuture<?> _ =
        threads.scheduleWithFixedDelay(guarded(action), interval, interval, TimeUnit.NANOSECONDS);
  }

  /** Searches for what takes too long, and probes, from time to time; where failing volumes are to be found. */
  public void watch(FileStoreConfig.Health rules, Runnable findLate, Runnable probe) {
    if (rules.enabled()) {
      long interval = Math.max(rules.timeoutNanos() / CHECKS_PER_TIMEOUT, SHORTEST_NANOS);
      Standstill standstill = new Standstill(2 * interval, System::nanoTime);
      every(
          interval,
          () -> {
            if (!standstill.hasBeen()) {
              findLate.run();
            }
          });
      every(rules.intervalNanos(), probe);
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

  /** Stops and joins the threads; one that is held up is left to end by itself. */
  @Override
  public void close() {
    threads.shutdown();
    if (!own.join(LONGEST_CLOSE)) {
      LOG.warn("{} still waits for an answer", name);
    }
  }
}
