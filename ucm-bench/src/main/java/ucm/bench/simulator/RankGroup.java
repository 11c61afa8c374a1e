package ucm.bench.simulator;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineMemory;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.StepPlan;

/**
 * The tensor-parallel ranks of an engine, each on a thread of {@code ucm-serve-rank-<n>}. The engine's clock
 * stands still while they make and compare bytes. Used by one thread; when a step fails, so does every
 * later one.
 */
final class RankGroup implements EngineSimulator.Steps, AutoCloseable {

  private static final long CLOSE_SECONDS = 60;

  @FunctionalInterface
  private interface RankAction {
    void run(int rank) throws InterruptedException;
  }

  private final EngineClock.Wall clock;
  private final int layers;
  private final int blockTokens;
  private final LayerBarrier barrier;
  private final List<WorkerConnector> workers;
  private final List<EngineMemory> memory;
  private final ExecutorService threads;
  private volatile BitSet failed = new BitSet();

  /** Starts the threads; the workers are closed with this. */
  RankGroup(
      EngineClock.Wall clock,
      int layers,
      int blockTokens,
      List<WorkerConnector> workers,
      List<EngineMemory> memory) {
    this.clock = clock;
    this.layers = layers;
    this.blockTokens = blockTokens;
    this.workers = workers;
    this.memory = memory;
    this.barrier = new LayerBarrier(clock, workers.size(), layers);
    this.threads =
        Executors.newFixedThreadPool(
            workers.size(), Thread.ofPlatform().name("ucm-serve-rank-", 0).daemon().factory());
  }

  @Override
  public BitSet run(Batch batch, StepPlan plan, long computeNanos) throws InterruptedException {
    List<Batch.Pages> loads = batch.loaded();
    List<Batch.Pages> computes = batch.completed(blockTokens);
    uncounted(rank -> prepare(memory.get(rank), loads, computes));
    barrier.begin(computeNanos);
    onAll(rank -> step(rank, plan));
    uncounted(rank -> verify(memory.get(rank), loads));
    return failed;
  }

  /** Before a step: what it loads must be seen to arrive, what it computes is there already. */
  private static void prepare(
      EngineMemory pages, List<Batch.Pages> loads, List<Batch.Pages> computes) {
    loads.forEach(run -> Arrays.stream(run.pages()).forEach(pages::poison));
    for (Batch.Pages run : computes) {
      for (int i = 0; i < run.pages().length; i++) {
        pages.fillPage(run.ids(), i, run.pages()[i]);
      }
    }
  }

  /** Runs a step on a rank as the connector asks for it. */
  private void step(int rank, StepPlan plan) throws InterruptedException {
    WorkerConnector worker = workers.get(rank);
    long before = clock.nanos();
    worker.startLoad(plan);
    for (int layer = 0; layer < layers; layer++) {
      worker.waitForLayerLoad(layer);
      barrier.compute(rank, clock.nanos() - before);
      worker.saveLayer(layer);
      before = clock.nanos();
    }
    int[][] errors = barrier.exchange(rank, worker.takeLoadErrors());
    BitSet blocks = new BitSet();
    for (int other = 0; other < errors.length; other++) {
      if (other != rank) {
        worker.excludeFromSave(errors[other]);
      }
      Arrays.stream(errors[other]).forEach(blocks::set);
    }
    // The same on all ranks.
    failed = blocks;
    worker.waitForSave();
  }

  /** After a step: compares what was loaded. */
  private void verify(EngineMemory pages, List<Batch.Pages> loads) {
    for (Batch.Pages run : loads) {
      for (int i = 0; i < run.pages().length; i++) {
        if (!failed.get(run.pages()[i])) {
          pages.verifyPage(run.ids(), i, run.pages()[i]);
        }
      }
    }
  }

  private void uncounted(RankAction action) throws InterruptedException {
    long start = System.nanoTime();
    try {
      onAll(action);
    } finally {
      clock.stoppedSince(start);
    }
  }

  private void onAll(RankAction action) throws InterruptedException {
    AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    List<Callable<@Nullable Void>> parts = new ArrayList<>();
    for (int i = 0; i < workers.size(); i++) {
      int rank = i;
      parts.add(
          () -> {
            try {
              action.run(rank);
            } catch (InterruptedException | RuntimeException | Error e) {
              first.compareAndSet(null, e);
              barrier.giveUp();
            }
            return null;
          });
    }
    Object _ = threads.invokeAll(parts);
    switch (first.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case InterruptedException e -> throw e;
      case Throwable e -> throw new IllegalStateException(e);
    }
  }

  /** Ends the step under way, the threads, and the workers. Idempotent. */
  @Override
  public void close() {
    barrier.giveUp();
    Cleanup.end(threads, CLOSE_SECONDS, "a rank still runs");
    workers.forEach(WorkerConnector::close);
  }
}
