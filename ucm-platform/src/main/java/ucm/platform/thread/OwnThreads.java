package ucm.platform.thread;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * Makes the threads of executors, named {@code ucm-<store>-<role>-<n>}, and waits for their end: an
 * executor has ended a moment before its threads have. Thread-safe.
 */
public final class OwnThreads implements ThreadFactory {

  /** The most threads that {@link #pool} takes. */
  static final int MOST_THREADS = 0x7fff;

  private static final int KEPT_IDLE_SECONDS = 60;

  private final String prefix;
  private final Runnable first;
  private final Thread.UncaughtExceptionHandler faults;

  // Guarded by this; those that have ended are dropped when one is made.
  private final List<Thread> threads = new ArrayList<>();
  private int made;

  /**
   * Makes no thread yet.
   *
   * @param prefix of their names, which a number follows
   * @param faults is told of one that ends by an error
   */
  public OwnThreads(String prefix, Thread.UncaughtExceptionHandler faults) {
    this(prefix, () -> {}, faults);
  }

  /** With something that each thread of a {@link #pool} does first. */
  OwnThreads(String prefix, Runnable first, Thread.UncaughtExceptionHandler faults) {
    this.prefix = prefix;
    this.first = first;
    this.faults = faults;
  }

  @Override
  public Thread newThread(Runnable work) {
    return note(Thread.ofPlatform().daemon().unstarted(work));
  }

  /**
   * An executor that calls the idle thread that worked last, which looks around before it sleeps; the
   * threads of a {@link java.util.concurrent.ThreadPoolExecutor} are called in turn, each from a sleep.
   */
  public ForkJoinPool pool(int maxThreads) {
    return new ForkJoinPool(
        maxThreads,
        this::worker,
        null,
        true,
        0,
        MOST_THREADS,
        1,
        null,
        KEPT_IDLE_SECONDS,
        TimeUnit.SECONDS);
  }

  private ForkJoinWorkerThread worker(ForkJoinPool pool) {
    return note(
        new ForkJoinWorkerThread(null, pool, true) {
          @Override
          protected void onStart() {
            first.run();
          }
        });
  }

  private synchronized <T extends Thread> T note(T thread) {
    thread.setName(prefix + made++);
    thread.setUncaughtExceptionHandler(faults);
    threads.removeIf(old -> old.getState() == Thread.State.TERMINATED);
    threads.add(thread);
    return thread;
  }

  /**
   * Waits until all have ended, for no longer than some time; an interrupt of the caller is kept for later.
   *
   * @return false when one still runs
   */
  public boolean join(Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    // One that an executor could not start has no end.
    return all().stream()
        .filter(thread -> thread.getState() != Thread.State.NEW)
        .allMatch(thread -> ThreadEnd.await(thread, Duration.ofNanos(end - System.nanoTime())));
  }

  private synchronized List<Thread> all() {
    return List.copyOf(threads);
  }
}
