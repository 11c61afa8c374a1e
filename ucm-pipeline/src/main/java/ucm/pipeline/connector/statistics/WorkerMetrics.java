package ucm.pipeline.connector.statistics;

import java.util.concurrent.TimeUnit;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.FailedLoads;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;

/**
 * What a worker counts of its steps: loads and saves as the original does, and the worker's part of
 * the funnel of hits. Tokens count as loaded when this rank has their whole block, and as used when
 * it has all blocks before it as well. Thread-safe.
 */
public final class WorkerMetrics {

  private static final double NANOS_PER_MS = 1e6;
  private static final long STALL_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final int blockTokens;
  private final long blockBytes;
  private final Histogram loadRequests;
  private final Histogram loadBlocks;
  private final Histogram loadMillis;
  private final Histogram loadSpeed;
  private final Counter loadBytes;
  private final Histogram saveRequests;
  private final Histogram saveBlocks;
  private final Histogram saveMillis;
  private final Histogram saveSpeed;
  private final Counter saveBytes;
  private final Histogram layerWaitMillis;
  private final Counter stalledLayers;
  private final Counter loadedTokens;
  private final Counter usedTokens;
  private final Counter corruptTokens;
  private final Counter goneTokens;
  private final Counter downTokens;
  private final Counter askedBlocks;
  private final Counter failedBlocks;
  private final Counter plannedSaves;
  private final Counter unsavedShards;

  public WorkerMetrics(StoreMetrics metrics, EngineSpec spec) {
    this.blockTokens = spec.blockTokens();
    this.blockBytes = spec.kv().blockLayout().blockSize();
    loadRequests = metrics.histogram("load_requests_num", "Requests that a step loads.");
    loadBlocks = metrics.histogram("load_blocks_num", "Blocks that a step loads.");
    loadMillis =
        metrics.histogram("load_duration", "From the start of a step's load to its end (ms).");
    loadSpeed = metrics.histogram("load_speed", "Bytes of a step's load in that time (GB/s).");
    loadBytes = metrics.counter("load_bytes", "Bytes loaded into the engine.");
    saveRequests = metrics.histogram("save_requests_num", "Requests that a step saves.");
    saveBlocks = metrics.histogram("save_blocks_num", "Blocks that a step saves.");
    saveMillis =
        metrics.histogram(
            "save_duration", "From waitForSave until the engine may write again (ms).");
    saveSpeed = metrics.histogram("save_speed", "Bytes of a step's save in that time (GB/s).");
    saveBytes = metrics.counter("save_bytes", "Bytes saved from the engine.");
    layerWaitMillis =
        metrics.histogram("layerwise_wait_blocking_ms", "Time a layer was waited for (ms).");
    stalledLayers =
        metrics.counter("layerwise_stalled_layers", "Layers waited for longer than 1 ms.");
    loadedTokens = metrics.counter("funnel_loaded_tokens", "Tokens whose blocks were loaded.");
    usedTokens = metrics.counter("funnel_used_tokens", "Tokens loaded without a gap before them.");
    corruptTokens =
        metrics.counter("funnel_load_corrupt_tokens", "Tokens found whose blocks were damaged.");
    goneTokens =
        metrics.counter(
            "funnel_load_evicted_tokens", "Tokens found whose blocks were gone when loaded.");
    downTokens =
        metrics.counter(
            "funnel_load_store_down_tokens",
            "Tokens found that the store refused, failed or did not load in time.");
    askedBlocks = metrics.counter("connector_load_blocks", "Blocks asked to be loaded.");
    failedBlocks =
        metrics.counter("connector_load_failed_blocks", "Blocks that could not be loaded.");
    plannedSaves = metrics.counter("connector_save_blocks", "Blocks asked to be saved.");
    unsavedShards =
        metrics.counter("connector_save_failed_shards", "Shards that could not be saved.");
  }

  /** A step begins that loads and saves so many blocks. */
  public void begins(int toLoad, int toSave) {
    askedBlocks.add(toLoad);
    plannedSaves.add(toSave);
  }

  /** A step has ended, of which so much was not moved. */
  public void ends(int notLoaded, int shardsNotSaved) {
    failedBlocks.add(notLoaded);
    unsavedShards.add(shardsNotSaved);
  }

  /** A layer was waited for. */
  public void waited(long nanos) {
    layerWaitMillis.record(nanos / NANOS_PER_MS);
    if (nanos > STALL_NANOS) {
      stalledLayers.increment();
    }
  }

  /**
   * The loads of a step have ended.
   *
   * @param nanos from their start
   * @param failed the engine's blocks that could not be loaded
   */
  public void loaded(StepPlan plan, long nanos, FailedLoads failed) {
    int blocks = 0;
    int requests = 0;
    int ok = 0;
    int used = 0;
    for (RequestPlan request : plan.requests()) {
      int[] targets = request.loadBlocks();
      requests += targets.length > 0 ? 1 : 0;
      blocks += targets.length;
      boolean whole = true;
      for (int block : targets) {
        boolean isThere = !failed.blocks().get(block);
        whole &= isThere;
        used += whole ? 1 : 0;
        ok += isThere ? 1 : 0;
        if (!isThere) {
          why(failed, block).add(blockTokens);
        }
      }
    }
    if (blocks == 0) {
      return;
    }
    loadRequests.record(requests);
    loadBlocks.record(blocks);
    loadMillis.record(nanos / NANOS_PER_MS);
    loadBytes.add(ok * blockBytes);
    loadSpeed.record(gbPerSecond(ok * blockBytes, nanos));
    loadedTokens.add((long) ok * blockTokens);
    usedTokens.add((long) used * blockTokens);
  }

  /** Blocks of a request are read where a store has them, so that nothing is moved here. */
  public void borrowed(int blocks) {
    askedBlocks.add(blocks);
    loadRequests.record(1);
    loadBlocks.record(blocks);
    loadBytes.add(blocks * blockBytes);
    loadedTokens.add((long) blocks * blockTokens);
    usedTokens.add((long) blocks * blockTokens);
  }

  /** The same, where the store has read them first. */
  public void fetched(int blocks, long nanos) {
    if (blocks > 0) {
      borrowed(blocks);
      loadMillis.record(nanos / NANOS_PER_MS);
      loadSpeed.record(gbPerSecond(blocks * blockBytes, nanos));
    }
  }

  private Counter why(FailedLoads failed, int block) {
    if (failed.corrupt().get(block)) {
      return corruptTokens;
    }
    return failed.gone().get(block) ? goneTokens : downTokens;
  }

  /**
   * The saves of a step have ended.
   *
   * @param bytes what was saved
   * @param nanos how long the engine was held up
   */
  public void saved(StepPlan step, long bytes, long nanos) {
    int blocks = step.saveBlocks();
    if (blocks == 0) {
      return;
    }
    saveRequests.record(
        (int) step.requests().stream().filter(r -> r.saveBlocks().length > 0).count());
    saveBlocks.record(blocks);
    saveMillis.record(nanos / NANOS_PER_MS);
    saveBytes.add(bytes);
    saveSpeed.record(gbPerSecond(bytes, nanos));
  }

  private static double gbPerSecond(long bytes, long nanos) {
    return bytes / (double) Math.max(1, nanos);
  }
}
