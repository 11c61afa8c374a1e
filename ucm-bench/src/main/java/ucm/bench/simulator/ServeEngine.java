package ucm.bench.simulator;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.pipeline.Pipeline;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;

/**
 * A simulated engine with UCM: a pipeline and a worker side for each tensor-parallel rank, and a scheduler
 * side. With one rank the scheduler asks the rank's pipeline, with several it has one of its own. Each rank
 * has a thread, {@code ucm-serve-rank-<n>}. The engine's clock stands still while ranks make and compare
 * bytes. Used by one thread; when a step fails, so does every later one.
 */
public final class ServeEngine implements AutoCloseable {
  private static final long CLOSE_SECONDS = 60;

  @FunctionalInterface
  private interface RankAction {
    void run(int rank) throws InterruptedException;
  }

  private final EngineSpec spec;
  private final BlockHasher hasher;
  private final EngineClock.Wall clock = new EngineClock.Wall();
  private final List<EngineMemory> memory;
  private final List<Pipeline> pipelines = new ArrayList<>();
  private final List<WorkerConnector> workers = new ArrayList<>();
  private final Deque<AutoCloseable> open = new ArrayDeque<>();
  private final SchedulerConnector scheduler;
  private final LayerBarrier barrier;
  private final ExecutorService threads;
  private volatile BitSet failed = new BitSet();

  /**
   * Opens the pipelines; throws when a stage cannot be opened, or the pipeline keeps no bytes though it is
   * not in lite mode. The memory of each rank outlives this.
   */
  public ServeEngine(
      ConnectorSetup setup, EngineSpec spec, BlockHasher hasher, List<EngineMemory> memory) {
    this.spec = spec;
    this.hasher = hasher;
    this.memory = memory;
    try {
      for (int rank = 0; rank < spec.tpSize(); rank++) {
        Pipeline pipeline = setup.openPipeline(rank);
        open.push(pipeline);
        if (!setup.settings().useLite() && !pipeline.keepsBytes()) {
          throw new StoreException(
              pipeline
                  + " keeps no bytes, so the engine would be told of no hits: name a pipeline that"
                  + " stores blocks, such as Cache|Posix");
        }
        pipelines.add(pipeline);
        workers.add(setup.worker(rank, memory.get(rank).caches(), pipeline));
      }
      scheduler = spec.tpSize() == 1 ? setup.scheduler(pipelines.getFirst()) : setup.scheduler();
      open.push(scheduler);
      barrier = new LayerBarrier(clock, workers.size(), spec.kv().layers());
      threads =
          Executors.newFixedThreadPool(
              workers.size(), Thread.ofPlatform().name("ucm-serve-rank-", 0).daemon().factory());
      open.push(this::endRanks);
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  private void endRanks() {
    barrier.giveUp();
    Cleanup.end(threads, CLOSE_SECONDS, "a rank still runs");
    workers.forEach(WorkerConnector::close);
  }

  /**
   * Serves requests, and says after each step how many are finished; the engine's KV memory is empty at the
   * beginning. Throws when a block comes back with another byte than it was saved with.
   */
  public ServeResult run(
      EnginePlan plan, ComputeModel compute, List<ServeRequest> requests, IntConsumer finished)
      throws InterruptedException {
    return new EngineSimulator(plan, hasher, clock, compute, scheduler, this::step)
        .run(requests, finished);
  }

  private BitSet step(Batch batch, StepPlan plan, long computeNanos) throws InterruptedException {
    List<Batch.Pages> loads = batch.loaded();
    List<Batch.Pages> computes = batch.completed(spec.blockTokens());
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
    for (int layer = 0; layer < spec.kv().layers(); layer++) {
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

  /** Waits until everything that was saved is durable; throws when it is not, in time. */
  public void flush(Duration timeout) throws InterruptedException {
    for (Pipeline pipeline : pipelines) {
      long _ = EngineConfig.flush(pipeline, timeout);
    }
  }

  /** How long the engine's clock stood still while bytes were made and compared, in seconds. */
  double uncountedSeconds() {
    return clock.stoppedNanos() / 1e9;
  }

  /** Ends what runs and closes the pipelines. Idempotent. */
  @Override
  public synchronized void close() {
    Cleanup.closeAll(open);
  }
}
