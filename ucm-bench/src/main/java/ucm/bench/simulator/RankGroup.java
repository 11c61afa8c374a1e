package ucm.bench.simulator;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.StepPlan;

/**
 * The ranks of an engine, each with a thread of its own, {@code ucm-serve-rank-<n>}. The engine's clock
 * stands still while they make and compare bytes. Used by one thread; when a step fails, so does every
 * later one.
 */
final class RankGroup implements StepRunner, AutoCloseable {

  private static final long CLOSE_SECONDS = 60;

  @FunctionalInterface
  private interface RankAction {
    void run(Rank rank) throws InterruptedException;
  }

  private final WallClock clock;
  private final int blockTokens;
  private final LayerBarrier barrier;
  private final List<Rank> ranks = new ArrayList<>();
  private final List<ExecutorService> threads = new ArrayList<>();

  /** Starts the threads; the workers are closed with this. */
  RankGroup(
      WallClock clock,
      int layers,
      int blockTokens,
      List<WorkerConnector> workers,
      List<KvPages> pages) {
    this.clock = clock;
    this.blockTokens = blockTokens;
    this.barrier = new LayerBarrier(clock, workers.size(), layers);
    for (int rank = 0; rank < workers.size(); rank++) {
      ranks.add(new Rank(rank, layers, workers.get(rank), pages.get(rank), clock, barrier));
      String name = "ucm-serve-rank-" + rank;
      threads.add(
          Executors.newSingleThreadExecutor(Thread.ofPlatform().name(name).daemon().factory()));
    }
  }

  @Override
  public BitSet run(Batch batch, StepPlan plan, long computeNanos) throws InterruptedException {
    List<PageRun> loads = batch.loaded();
    List<PageRun> computes = batch.completed(blockTokens);
    uncounted(rank -> rank.prepare(loads, computes));
    barrier.begin(computeNanos);
    onAll(rank -> rank.step(plan));
    uncounted(rank -> rank.verify(loads));
    return ranks.getFirst().failed();
  }

  private void uncounted(RankAction action) throws InterruptedException {
    clock.stop();
    try {
      onAll(action);
    } finally {
      clock.go();
    }
  }

  private void onAll(RankAction action) throws InterruptedException {
    AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    List<Future<?>> running = new ArrayList<>();
    for (int i = 0; i < ranks.size(); i++) {
      Rank rank = ranks.get(i);
      running.add(
          threads
              .get(i)
              .submit(
                  () -> {
                    try {
                      action.run(rank);
                    } catch (InterruptedException | RuntimeException | Error e) {
                      first.compareAndSet(null, e);
                      barrier.giveUp();
                    }
                  }));
    }
    for (Future<?> future : running) {
      await(future);
    }
    switch (first.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case InterruptedException e -> throw e;
      case Throwable e -> throw new IllegalStateException(e);
    }
  }

  private static void await(Future<?> future) throws InterruptedException {
    try {
      Object _ = future.get();
    } catch (ExecutionException e) {
      throw new IllegalStateException("a rank lets nothing through", e);
    }
  }

  /** Ends the step under way, the threads, and the workers. Idempotent. */
  @Override
  public void close() {
    barrier.giveUp();
    threads.forEach(ExecutorService::shutdownNow);
    try {
      for (ExecutorService thread : threads) {
        if (!thread.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
          throw new IllegalStateException("a rank still runs after " + CLOSE_SECONDS + " s");
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    ranks.forEach(Rank::close);
  }
}
