package ucm.pipeline.connector.statistics;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;

/**
 * What a worker counts of its steps: loads and saves as the original does, and the worker's part of
 * the funnel of hits. Tokens count as loaded when this rank has their whole block, and as used when
 * it has all blocks before it as well. Used by one thread.
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
  private StepPlan plan = StepPlan.EMPTY;
  private long loadStart;

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
  }

  public void begins(StepPlan step) {
    plan = step;
    loadStart = System.nanoTime();
  }

  public void waited(long nanos) {
    layerWaitMillis.record(nanos / NANOS_PER_MS);
    if (nanos > STALL_NANOS) {
      stalledLayers.increment();
    }
  }

  /**
   * The loads of the step have ended; only the first call after {@link #begins} counts.
   *
   * @param failed the engine's blocks that could not be loaded
   * @param corrupt those of them that are damaged
   * @param gone those of them that the store does not have
   */
  public void loaded(BitSet failed, BitSet corrupt, BitSet gone) {
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
        whole &= !failed.get(block);
        used += whole ? 1 : 0;
        ok += failed.get(block) ? 0 : 1;
        if (failed.get(block)) {
          Counter miss = corrupt.get(block) ? corruptTokens : downTokens;
          (gone.get(block) && !corrupt.get(block) ? goneTokens : miss).add(blockTokens);
        }
      }
    }
    plan = StepPlan.EMPTY;
    if (blocks == 0) {
      return;
    }
    long nanos = System.nanoTime() - loadStart;
    loadRequests.record(requests);
    loadBlocks.record(blocks);
    loadMillis.record(nanos / NANOS_PER_MS);
    loadBytes.add(ok * blockBytes);
    loadSpeed.record(gbPerSecond(ok * blockBytes, nanos));
    loadedTokens.add((long) ok * blockTokens);
    usedTokens.add((long) used * blockTokens);
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
