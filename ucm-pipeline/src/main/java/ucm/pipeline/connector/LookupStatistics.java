package ucm.pipeline.connector;

import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.pipeline.connector.statistics.LiteMonitor;
import ucm.pipeline.connector.statistics.StageLookups;

/**
 * Counts and logs what look-ups found, and in tokens what becomes of the prompts that are asked for, each once, by its first look-up:
 *
 * <pre>
 * asked = on the device + found outside + missed
 * missed = too short + never stored + evicted + store down
 * </pre>
 *
 * <p>The worker side goes on with what was found: {@code WorkerMetrics}. Used by one thread.
 *
 * <p>A block after the first one that is missing cannot be used, even when it is there. The engine
 * that stored it stored the missing one too, so it counts as lost to the eviction of that one.
 */
final class LookupStatistics {

  // The lines are read by tools, under the name of the connector.
  private static final Logger LOG = LoggerFactory.getLogger(SchedulerConnector.class);

  /** Blocks that are remembered as stored or found, 2 MiB of half ids; one may push out another. */
  private static final int REMEMBERED = 1 << 18;

  private final int blockTokens;
  private final int parts;
  private final StageLookups lookups;
  private final @Nullable LiteMonitor monitor;
  private HitStatistics sums = HitStatistics.NONE;
  private final long[] stored = new long[REMEMBERED];
  private final Counter lookupBlocks;
  private final Counter hitBlocks;
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

  LookupStatistics(
      StoreMetrics metrics, EngineSpec spec, StageLookups lookups, @Nullable LiteMonitor monitor) {
    this.blockTokens = spec.blockTokens();
    this.parts = spec.parts();
    this.lookups = lookups;
    this.monitor = monitor;
    lookupBlocks =
        metrics.counter("connector_lookup_blocks", "Blocks of prompts looked up outside.");
    hitBlocks = metrics.counter("connector_hit_blocks", "Blocks looked up and found outside.");
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
  void skipped(int tokens) {
    asked.add(tokens);
    tooShort.add(tokens);
  }

  StageLookups.Sums before() {
    return lookups.sums();
  }

  /**
   * Counts a look-up that has ended.
   *
   * @return whether it was logged: it found something else than the one before it
   */
  boolean count(PromptLookup ended) {
    int blocks = ended.ids.size();
    int onDevice = ended.onDevice();
    int outside = ended.found();
    if (onDevice < blocks) {
      lookupBlocks.add(blocks - onDevice);
      hitBlocks.add(outside);
    }
    if (ended.first) {
      countFirst(ended, ended.ids, onDevice, outside);
    }
    boolean log = blocks > 0 && ended.state.notices(onDevice, outside);
    if (log) {
      LOG.info(
          "request_id: {}, total_blocks_num: {}, hit hbm: {}, hit external: {}, total tokens: {}",
          ended.state.id,
          blocks,
          onDevice,
          outside,
          ended.request.tokens().length);
    }
    if (ended.first && blocks > 0) {
      sums = sums.plus(blocks, onDevice, outside);
      if (monitor != null) {
        logRates(blocks, outside);
        monitor.add(ended.ids, ended.request.promptTokens(), sums);
      }
    }
    return log;
  }

  private void logRates(int blocks, int found) {
    if (LOG.isInfoEnabled()) {
      LOG.info(
          String.format(
              Locale.ROOT,
              "req external hit rate: %.2f, total external hit rate: %.2f",
              (double) found / blocks,
              sums.externalHitRate()));
    }
  }

  private void countFirst(PromptLookup ended, BlockIds ids, int onDevice, int outside) {
    int tokens = ended.request.tokens().length;
    asked.add(tokens);
    askedBlocks.add(ids.size());
    hbm.add((long) onDevice * blockTokens);
    hbmBlocks.add(onDevice);
    found.add((long) outside * blockTokens);
    tooShort.add(tokens - (long) ids.size() * blockTokens);
    if (!ids.isEmpty()) {
      hitRates.record((double) outside / ids.size());
    }
    int[] stages = lookups.foundIn(ended.before, outside, parts);
    for (int i = 0; i < stages.length; i++) {
      foundIn[i].add((long) stages[i] * blockTokens);
    }
    int gap = onDevice + outside;
    stores(ids.slice(0, gap));
    if (ended.failed() || lookups.isDownSince(ended.before)) {
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
  void declined(int blocks) {
    declined.add((long) blocks * blockTokens);
  }

  void stores(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      stored[slot(ids, i)] = ids.low(i);
    }
  }

  HitStatistics sums() {
    return sums;
  }

  private static int slot(BlockIds ids, int i) {
    return (int) ids.high(i) & REMEMBERED - 1;
  }
}
