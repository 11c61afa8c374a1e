package ucm.store.file.tier;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.store.file.config.StoreKind;

/** What the upper of two tiers counts, beside what a store of files does. Thread-safe. */
record TierMetrics(
    Counter upperLoadShards,
    Counter lowerLoadShards,
    Counter promotedShards,
    Counter unpromotedShards,
    Counter divertedShards,
    Counter writtenBlocks,
    Counter writeFailedBlocks,
    Counter keptBlocks,
    Counter refusedShards,
    StoreMetrics registry) {

  static TierMetrics of(StoreKind kind, StoreMetrics all) {
    StoreMetrics metrics = kind.metrics(all);
    return new TierMetrics(
        metrics.counter("tier_upper_load_shards", "Shards of loads that were here"),
        metrics.counter("tier_lower_load_shards", "Shards of loads that the next stage had"),
        metrics.counter("tier_promoted_shards", "Shards loaded from the next stage and kept here"),
        metrics.counter(
            "tier_unpromoted_shards", "Shards loaded from below that could not be kept here"),
        metrics.counter(
            "tier_diverted_shards", "Shards dumped straight to the next stage, refused here"),
        metrics.counter("tier_written_blocks", "Blocks written from here to the next stage"),
        metrics.counter("tier_write_failed_blocks", "Blocks that could not be written to it"),
        metrics.counter("tier_kept_blocks", "Cold blocks not removed, as they are nowhere else"),
        metrics.counter("tier_refused_shards", "Shards not moved, as the next stage is given up"),
        metrics);
  }
}
