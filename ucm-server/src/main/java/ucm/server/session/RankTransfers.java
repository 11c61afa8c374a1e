package ucm.server.session;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.server.staging.StagingSegment;

/**
 * Moves blocks between the slots of one rank and the pipeline. Loads and saves run side by side: each
 * is a step of a worker connector of its own. Slots of a transfer are left alone by others until it
 * has ended. Thread-safe.
 */
final class RankTransfers implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(RankTransfers.class);
  private static final int THREADS = 4;
  private static final int[] NO_BLOCKS = {};
  // Each task has a deadline in its store; this is for a store that does not keep it.
  private static final long CLOSE_SECONDS = 120;

  private final int rank;
  private final int layers;
  private final StagingSegment segment;
  private final BlockingQueue<WorkerConnector> idle = new ArrayBlockingQueue<>(THREADS);
  private final List<WorkerConnector> connectors = new ArrayList<>();
  private final ExecutorService executor;

  /**
   * Makes connectors over an open pipeline.
   *
   * @param segment the rank's slots; closed with this
   */
  RankTransfers(ConnectorSetup setup, int rank, int layers, StagingSegment segment, Store store) {
    this.rank = rank;
    this.layers = layers;
    this.segment = segment;
    for (int i = 0; i < THREADS; i++) {
      connectors.add(setup.worker(rank, segment.caches(), store));
    }
    idle.addAll(connectors);
    executor =
        Executors.newFixedThreadPool(
            THREADS,
            Thread.ofPlatform().daemon().name("ucm-serve-rank-" + rank + "-", 0).factory());
  }

  StagingSegment segment() {
    return segment;
  }

  /**
   * Loads blocks into slots.
   *
   * @param ids as rank 0 names them
   * @param done gets how many of the first blocks are there
   */
  void load(String requestId, BlockIds ids, int[] slots, IntConsumer done) {
    run(
        new RequestPlan(requestId, ids, slots, BlockIds.empty(), NO_BLOCKS, NO_BLOCKS),
        failed -> done.accept(failed == null ? 0 : leading(slots, failed)));
  }

  /** Saves blocks from slots; {@code done} is called when the slots may be written again. */
  void save(String requestId, BlockIds ids, int[] slots, Runnable done) {
    run(
        new RequestPlan(requestId, BlockIds.empty(), NO_BLOCKS, ids, slots, NO_BLOCKS),
        failed -> done.run());
  }

  /** Has {@code ended} get the slots that could not be loaded; null when nothing was done. */
  private void run(RequestPlan plan, Consumer<int @Nullable []> ended) {
    try {
      executor.execute(() -> ended.accept(step(plan)));
    } catch (RejectedExecutionException e) {
      ended.accept(null);
    }
  }

  private int @Nullable [] step(RequestPlan plan) {
    try {
      return step(new StepPlan(List.of(plan)));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    } catch (RuntimeException e) {
      LOG.warn("rank {}: blocks of {} are not moved: {}", rank, plan.requestId(), e.toString());
      return null;
    }
  }

  private int[] step(StepPlan plan) throws InterruptedException {
    WorkerConnector connector = idle.take();
    try {
      connector.startLoad(plan);
      for (int layer = 0; layer < layers; layer++) {
        connector.waitForLayerLoad(layer);
        connector.saveLayer(layer);
      }
      connector.waitForSave();
      return connector.takeLoadErrors();
    } finally {
      connector.abandonStep();
      idle.add(connector);
    }
  }

  private static int leading(int[] slots, int[] failed) {
    for (int i = 0; i < slots.length; i++) {
      for (int bad : failed) {
        if (bad == slots[i]) {
          return i;
        }
      }
    }
    return slots.length;
  }

  /** Waits for the transfers under way; then the slots are gone. */
  @Override
  public void close() {
    executor.shutdown();
    boolean ended = false;
    try {
      ended = executor.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (!ended) {
      LOG.warn(
          "rank {}: transfers did not end within {} s; their slots in {} are not unmapped",
          rank,
          CLOSE_SECONDS,
          segment.path());
      return;
    }
    connectors.forEach(WorkerConnector::close);
    segment.close();
  }
}
