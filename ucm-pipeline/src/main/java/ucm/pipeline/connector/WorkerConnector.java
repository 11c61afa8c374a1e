package ucm.pipeline.connector;

import java.util.BitSet;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.FailedLoads;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.connector.statistics.WorkerMetrics;
import ucm.pipeline.hash.BlockHasher;

/**
 * The worker side: moves blocks between the KV cache of one rank and the pipeline. One for each
 * tensor-parallel rank, made by {@link ConnectorSetup}.
 *
 * <p>Each step of the engine is
 *
 * <pre>{@code
 * worker.startLoad(plan);
 * for (int layer = 0; layer < layers; layer++) {
 *   worker.waitForLayerLoad(layer);
 *   // compute the layer: its KV cache is in memory
 *   worker.saveLayer(layer);
 * }
 * worker.waitForSave();
 * int[] recompute = worker.takeLoadErrors();
 * }</pre>
 *
 * <p>whatever the mode. In <em>direct</em> mode {@code startLoad} returns when everything is loaded
 * and {@code waitForSave} saves everything. In <em>layer-wise</em> mode each layer is loaded while the
 * one before it is computed, and saved while the one after it is.
 *
 * <p>Blocks that could not be loaded hold undefined bytes; the engine computes them again, and
 * everything computed from them. Nothing is stored that this step computed from them. A rank does not
 * see what others could not load: an engine with several ranks tells each of them with {@link
 * #excludeFromSave} before {@code waitForSave}.
 *
 * <p>Used by one thread. Nothing is thrown because a store fails. The wrong order of calls is answered
 * with {@link IllegalStateException}. When a step is interrupted or the engine gives it up, {@link
 * #abandonStep} ends it.
 */
public final class WorkerConnector implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(WorkerConnector.class);

  private final EngineSpec spec;
  private final int rank;
  private final KvCaches caches;
  private final BlockHasher hasher;
  private final boolean layerwise;
  private final boolean eventSync;
  private final @Nullable Store owned;
  private final FailedLoads failedLoads = new FailedLoads();
  private final BitSet failed = failedLoads.blocks();
  private final BitSet taken = new BitSet();
  private final BitSet earlier = new BitSet();
  private final StepLoads loads;
  private final StepSaves saves;
  private long lastEvent;
  private final WorkerMetrics counted;
  private StepPlan toLoad = StepPlan.EMPTY;
  private StepPlan toSave = StepPlan.EMPTY;
  private long loadStart;
  private boolean inStep;
  private boolean closed;

  WorkerConnector(
      ConnectorSetup setup, int rank, KvCaches caches, StoreCalls calls, @Nullable Store owned) {
    this.spec = setup.spec();
    this.rank = rank;
    this.caches = caches;
    this.hasher = setup.hasher();
    this.layerwise = setup.settings().useLayerwise();
    this.eventSync = setup.settings().enableEventSync() && caches.isOnDevice();
    this.owned = owned;
    BlockLayout cut = spec.kv().blockLayout();
    this.loads = new StepLoads(caches, cut, layerwise, calls, failedLoads);
    this.saves = new StepSaves(caches, cut, layerwise, spec.tpSize() > 1, calls, failed);
    this.counted = setup.workerMetrics(rank);
    LOG.debug("{} with {}", this, caches);
  }

  /**
   * Begins a step. In direct mode, returns when its blocks are loaded; in layer-wise mode, at once.
   *
   * @param plan what the scheduler side planned for this step
   * @throws IllegalArgumentException when the plan names a block that the KV cache does not have
   * @throws InterruptedException when interrupted while waiting; then {@link #abandonStep}
   */
  public void startLoad(StepPlan plan) throws InterruptedException {
    requireOpen();
    if (inStep) {
      throw new IllegalStateException(
          this + " is in a step already: end it with waitForSave() or abandonStep() first");
    }
    for (RequestPlan request : plan.requests()) {
      requireBlocks(request, request.loadBlocks());
      requireBlocks(request, request.saveBlocks());
    }
    earlier.or(untaken());
    failedLoads.clear();
    taken.clear();
    RankBlocks blocks = loads.blocks();
    blocks.clear();
    int part = spec.mla() ? 0 : rank;
    for (RequestPlan request : plan.requests()) {
      blocks.addAll(hasher.ofRank(part, request.loadIds()), request.loadBlocks());
    }
    toLoad = plan;
    loadStart = System.nanoTime();
    toSave = spec.mla() && rank != 0 ? StepPlan.EMPTY : plan;
    saves.begin(toSave, hasher, part);
    counted.begins(blocks.size(), toSave.saveBlocks());
    lastEvent = 0;
    inStep = true;
    loads.start();
    if (!layerwise) {
      loads.await(0);
    }
    countLoads();
  }

  private void requireBlocks(RequestPlan request, int[] blocks) {
    for (int block : blocks) {
      if (block < 0 || block >= caches.blocks()) {
        throw new IllegalArgumentException(
            "request %s: block %s is planned, and the KV cache of %s has blocks 0 to %s"
                .formatted(request.requestId(), block, this, caches.blocks() - 1));
      }
    }
  }

  /**
   * Waits until the blocks of a layer are in memory, or have failed; in layer-wise mode also begins to
   * load the layer after it. To be called for every layer, in order, before it is computed.
   *
   * @throws InterruptedException when interrupted while waiting; then {@link #abandonStep}
   */
  public void waitForLayerLoad(int layer) throws InterruptedException {
    requireStep();
    Objects.checkIndex(layer, spec.kv().layers());
    if (loads.blocks().size() == 0) {
      return;
    }
    long start = System.nanoTime();
    loads.await(layer);
    counted.waited(System.nanoTime() - start);
    countLoads();
  }

  private void countLoads() {
    if (loads.done()) {
      // Once for each step.
      counted.loaded(toLoad, System.nanoTime() - loadStart, failedLoads);
      toLoad = StepPlan.EMPTY;
    }
  }

  /**
   * Says that a layer has been computed, so that its part of the step's blocks is in memory and stays
   * unchanged until {@link #waitForSave}. In layer-wise mode begins to save it; in direct mode does
   * nothing. With memory of a device, the device must have written it; an engine that does not wait for
   * that hands in an event instead.
   */
  public void saveLayer(int layer) {
    saveLayer(layer, 0);
  }

  /**
   * Says that the device has been told to compute a layer, and recorded an event after that: the layer
   * is saved when the event has come, and no thread waits for the device. What direct mode saves at the end
   * of the step waits for the event handed in last, so events of one stream are expected.
   *
   * @param event the driver's own handle (for CUDA, the value of a {@code CUevent}), not destroyed or
   *     recorded again until {@link #waitForSave} has returned; 0 when the layer is in memory
   * @throws IllegalStateException for an event when {@link #takesEvents} says no
   */
  public void saveLayer(int layer, long event) {
    requireStep();
    Objects.checkIndex(layer, spec.kv().layers());
    if (!loads.isThere(layer)) {
      throw new IllegalStateException(
          this + ": layer " + layer + " was computed before waitForLayerLoad(" + layer + ")");
    }
    if (event != 0 && !eventSync) {
      throw new IllegalStateException(
          ("%s takes no events: %s; wait until the device has computed the layer,"
                  + " then saveLayer(%s)")
              .formatted(
                  this,
                  caches.isOnDevice()
                      ? "enable_event_sync is false"
                      : "its KV cache is host memory",
                  layer));
    }
    lastEvent = event == 0 ? lastEvent : event;
    if (layerwise) {
      saves.layer(layer, event);
    }
  }

  /**
   * Whether {@link #saveLayer(int, long)} takes events: {@code enable_event_sync} is true, as it is by
   * default, and the KV cache is memory of a device.
   */
  public boolean takesEvents() {
    return eventSync;
  }

  /**
   * Tells of blocks that other ranks could not load in this step, so that nothing is saved that was
   * computed from them. To be called before {@link #waitForSave}.
   *
   * @param blocks what {@link #takeLoadErrors} gave on the other ranks
   */
  public void excludeFromSave(int[] blocks) {
    requireStep();
    saves.exclude(blocks);
  }

  /**
   * Ends a step: saves what is not saved yet and waits until the engine may write to its memory again.
   *
   * @throws IllegalStateException when a layer was left out
   * @throws InterruptedException when interrupted while waiting; then {@link #abandonStep}
   */
  public void waitForSave() throws InterruptedException {
    requireStep();
    if (!loads.done() || !saves.layersDone()) {
      throw new IllegalStateException(
          ("%s: the step ends after %s of %s layers: call waitForLayerLoad() and"
                  + " saveLayer() for each, or abandonStep()")
              .formatted(this, saves.layersSaved(), spec.kv().layers()));
    }
    long start = System.nanoTime();
    saves.rest(lastEvent);
    long unsaved = endStep();
    counted.saved(
        toSave,
        saves.bytes() - unsaved * spec.kv().blockLayout().shardSize(),
        System.nanoTime() - start);
  }

  /**
   * Ends a step that was not computed to its end: begins nothing more, and waits until no store uses
   * the engine's memory. Blocks of which not every layer was loaded count as load errors. May be
   * called at any time.
   */
  public void abandonStep() throws InterruptedException {
    if (inStep) {
      loads.settle();
      countLoads();
      endStep();
    }
  }

  /** Returns the shards that were not saved. */
  private int endStep() throws InterruptedException {
    int unsaved = saves.settle();
    counted.ends(failed.cardinality(), unsaved);
    inStep = false;
    return unsaved;
  }

  /**
   * The engine's blocks whose load failed and that were not named before, ascending. What they hold is
   * undefined. During a step, those of the layers waited for so far.
   */
  public int[] takeLoadErrors() {
    earlier.or(untaken());
    int[] errors = earlier.stream().toArray();
    earlier.clear();
    taken.or(failed);
    return errors;
  }

  private BitSet untaken() {
    BitSet untaken = (BitSet) failed.clone();
    untaken.andNot(taken);
    return untaken;
  }

  private void requireStep() {
    requireOpen();
    if (!inStep) {
      throw new IllegalStateException(this + " is in no step: call startLoad() first");
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  /**
   * Ends the step under way, and closes the pipeline unless it is shared. The engine keeps its KV
   * cache alive until this returns. Idempotent.
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    boolean interrupted = false;
    try {
      if (owned != null) {
        // It ends the tasks under way.
        owned.close();
      }
    } finally {
      while (inStep) {
        try {
          abandonStep();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** For example {@code rank 0 of engine-1}. */
  @Override
  public String toString() {
    return "rank " + rank + " of " + spec.instance();
  }
}
