package ucm.pipeline.connector.statistics;

import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.pipeline.connector.engine.EngineSpec;

/**
 * Counts, in tokens, what becomes of the prompts that are asked for, each once, by its first look-up:
 *
 * <pre>
 * asked = on the device + found outside + missed
 * missed = too short + never stored + evicted + store down
 * </pre>
 *
 * <p>The worker side goes on with what was found: {@link WorkerMetrics}. Used by one thread.
 *
 * <p>A block after the first one that is missing cannot be used, even when it is there. The engine
 * that stored it stored the missing one too, so it counts as lost to the eviction of that one.
 */
public final class HitFunnel {

  /** Blocks that are remembered as stored or found, 2 MiB of half ids; one may push out another. */
  private static final int REMEMBERED = 1 << 18;

  private final int blockTokens;
  private final int parts;
  private final StageLookups lookups;
  private final long[] stored = new long[REMEMBERED];
  private final Counter asked;
  private final Counter askedBlocks;
  private final Counter hbm;
  private final Counter hbmBlocks;
  private final Counter found;
  private final Counter[] foundIn;
  private final Counter declined;
  private final Counter tooShort;
  private final Counter neverStored;
  private final Counter evicted;
  private final Counter storeDown;
  private final StoreMetrics.Histogram hitRates;

  /**
   * Counts look-ups and hits.
   *
   * @param lookups counts the look-ups of each stage
   */
  public HitFunnel(StoreMetrics metrics, EngineSpec spec, StageLookups lookups) {
    this.blockTokens = spec.blockTokens();
    this.parts = spec.parts();
    this.lookups = lookups;
    asked = metrics.counter("total_prefix_query_tokens", "Tokens of prompts asked for.");
    askedBlocks = metrics.counter("total_prefix_query_blocks", "Full blocks of prompts asked for.");
    hbm = metrics.counter("gpu_hbm_hit_tokens", "Tokens of those on the device already.");
    hbmBlocks = metrics.counter("gpu_hbm_hit_blocks", "Blocks of those on the device already.");
    found = metrics.counter("ucm_hit_tokens", "Tokens of the others found outside.");
    foundIn =
        lookups.stages().stream()
            .map(
                stage ->
                    metrics.counter(
                        "funnel_found_" + stage + "_tokens",
                        "Tokens found outside, in stage " + stage + "."))
            .toArray(Counter[]::new);
    declined =
        metrics.counter(
            "funnel_declined_tokens",
            "Tokens found outside that hit_ratio or load_tokens_threshold left alone.");
    tooShort =
        metrics.counter(
            "funnel_miss_too_short_tokens",
            "Tokens missed because they fill no block, or by persist_token_threshold.");
    neverStored =
        metrics.counter(
            "funnel_miss_never_stored_tokens", "Tokens missed that this engine never stored.");
    evicted =
        metrics.counter(
            "funnel_miss_evicted_tokens", "Tokens missed that were stored or found before.");
    storeDown =
        metrics.counter(
            "funnel_miss_store_down_tokens", "Tokens missed because a store could not answer.");
    hitRates =
        metrics.histogram(
            "interval_lookup_hit_rates", "Share of a prompt's blocks that was found outside.");
  }

  /** A prompt that is shorter than the threshold and is not looked up. */
  public void skipped(int tokens) {
    asked.add(tokens);
    tooShort.add(tokens);
  }

  /** Where the sums of the stages stand before a look-up. Thread-safe. */
  public StageLookups.Sums sums() {
    return lookups.sums();
  }

  /**
   * Counts the first look-up of a prompt.
   *
   * @param before where the sums stood before it
   * @param tokens of the prompt
   * @param onDevice blocks that were on the device
   * @param outside blocks found outside
   * @param failed whether the look-up ended with an exception
   */
  public void looked(
      StageLookups.Sums before,
      int tokens,
      BlockIds ids,
      int onDevice,
      int outside,
      boolean failed) {
    asked.add(tokens);
    askedBlocks.add(ids.size());
    hbm.add((long) onDevice * blockTokens);
    hbmBlocks.add(onDevice);
    found.add((long) outside * blockTokens);
    tooShort.add(tokens - (long) ids.size() * blockTokens);
    if (!ids.isEmpty()) {
      hitRates.record((double) outside / ids.size());
    }
    int[] stages = lookups.foundIn(before, outside, parts);
    for (int i = 0; i < stages.length; i++) {
      foundIn[i].add((long) stages[i] * blockTokens);
    }
    int gap = onDevice + outside;
    stores(ids.slice(0, gap));
    if (failed || lookups.isDownSince(before)) {
      storeDown.add((long) (ids.size() - gap) * blockTokens);
      return;
    }
    int lost = 0;
    for (int i = gap; i < ids.size(); i++) {
      lost += stored[slot(ids, i)] == ids.low(i) ? 1 : 0;
    }
    evicted.add((long) lost * blockTokens);
    neverStored.add((long) (ids.size() - gap - lost) * blockTokens);
  }

  /** Blocks that were found and will not be loaded. */
  public void declined(int blocks) {
    declined.add((long) blocks * blockTokens);
  }

  public void stores(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      stored[slot(ids, i)] = ids.low(i);
    }
  }

  private static int slot(BlockIds ids, int i) {
    return (int) ids.high(i) & REMEMBERED - 1;
  }
}
