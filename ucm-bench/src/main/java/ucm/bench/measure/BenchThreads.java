package ucm.bench.measure;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * The threads that measure the machine's limits. They live as long as the benchmark, so that no timed
 * region starts a thread, and are joined at {@link #close}.
 */
public final class BenchThreads implements AutoCloseable {

  private static final long CLOSE_SECONDS = 30;

  /** What one of the threads does. */
  interface Part {
    /**
     * Does it.
     *
     * @param thread which of the threads, from 0
     */
    void run(int thread) throws IOException;
  }

  /** A thread's part of a step. */
  interface StepPart {
    /**
     * Does it.
     *
     * @param step of which this thread does its part
     * @param thread which of the threads, from 0
     */
    void run(BenchStep step, int thread) throws IOException;
  }

  private final int count;
  private final ExecutorService pool;

  public BenchThreads(int count) {
    this.count = count;
    pool =
        Executors.newFixedThreadPool(
            count, Thread.ofPlatform().name("ucm-bench-limit-", 0).factory());
  }

  /** How many. */
  int count() {
    return count;
  }

  /** Runs a part on every thread; returns how long all of them together took, in nanoseconds. */
  long time(Part part) throws InterruptedException {
    List<Callable<Void>> parts = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int thread = i;
      parts.add(
          () -> {
            part.run(thread);
            return null;
          });
    }
    long start = System.nanoTime();
    List<Future<Void>> ended = pool.invokeAll(parts);
    long elapsed = System.nanoTime() - start;
    for (Future<Void> one : ended) {
      requireOk(one);
    }
    return elapsed;
  }

  /**
   * Goes through the steps of a plan as a pipeline does: as many at a time as it has tasks under
   * way, and the next ones when all of these have ended. Returns how long that took, in
   * nanoseconds.
   */
  long time(BenchPlan plan, StepPart part) throws InterruptedException {
    List<BenchStep> steps = plan.steps();
    long nanos = 0;
    for (int first = 0; first < steps.size(); first += plan.inFlight()) {
      List<BenchStep> some = steps.subList(first, Math.min(steps.size(), first + plan.inFlight()));
      nanos +=
          time(
              thread -> {
                for (BenchStep step : some) {
                  part.run(step, thread);
                }
              });
    }
    return nanos;
  }

  private static void requireOk(Future<Void> ended) throws InterruptedException {
    try {
      ended.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof IOException io) {
        throw new UncheckedIOException("the plain file calls failed: " + io, io);
      }
      throw new IllegalStateException("a thread of the benchmark failed", e.getCause());
    }
  }

  /** Stops the threads; a file call under way is interrupted. */
  @Override
  public void close() {
    for (Runnable left : pool.shutdownNow()) {
      if (left instanceof Future<?> part) {
        // Its caller is told that it never will be done.
        boolean _ = part.cancel(false);
      }
    }
    boolean ended = false;
    try {
      ended = pool.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (!ended) {
      throw new IllegalStateException(
          "threads of the benchmark still wait for the file system after " + CLOSE_SECONDS + " s");
    }
  }
}
