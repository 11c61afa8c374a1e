package ucm.bench.simulator;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.IntConsumer;
import ucm.api.StoreException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.WrongBytesException;
import ucm.pipeline.Pipeline;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.hash.BlockHasher;

/**
 * A simulated engine with UCM: a pipeline and a worker side for each rank, and a scheduler side. With one
 * rank the scheduler asks the rank's pipeline, with several it has one of its own. Used by one thread.
 */
public final class ServeEngine implements AutoCloseable {

  private final BlockHasher hasher;
  private final EngineClock.Wall clock = new EngineClock.Wall();
  private final List<Pipeline> pipelines = new ArrayList<>();
  private final Deque<AutoCloseable> open = new ArrayDeque<>();
  private final RankGroup ranks;
  private final SchedulerConnector scheduler;

  /**
   * Opens the pipelines.
   *
   * @param setup of its connectors
   * @param hasher the one that the configuration names, for the engine's own view of what a block holds
   * @param memory of each rank; outlives this
   * @throws StoreException when a stage cannot be opened, or the pipeline keeps no bytes though
   *     it is not in lite mode
   */
  public ServeEngine(
      ConnectorSetup setup, EngineSpec spec, BlockHasher hasher, List<EngineMemory> memory) {
    this.hasher = hasher;
    try {
      List<WorkerConnector> workers = new ArrayList<>();
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
      ranks = new RankGroup(clock, spec.kv().layers(), spec.blockTokens(), workers, memory);
      open.push(ranks);
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  /**
   * Serves requests; the engine's KV memory is empty at the beginning.
   *
   * @param finished told how many are finished, after each step
   * @throws WrongBytesException when a block comes back with another byte than it was saved with
   */
  public ServeResult run(
      EnginePlan plan, ComputeModel compute, List<ServeRequest> requests, IntConsumer finished)
      throws InterruptedException {
    return new EngineSimulator(plan, hasher, clock, compute, scheduler, ranks)
        .run(requests, finished);
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
