package ucm.store.file.tier;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.store.file.config.StoreKind;

/** What the upper of two tiers counts, beside what a store of files does. Thread-safe. */
final class TierMetrics {

  final StoreMetrics registry;

  final Counter upperLoadShards =
      counter("tier_upper_load_shards", "Shards of loads that were here");
  final Counter lowerLoadShards =
      counter("tier_lower_load_shards", "Shards of loads that the next stage had");
  final Counter promotedShards =
      counter("tier_promoted_shards", "Shards loaded from the next stage and kept here");
  final Counter unpromotedShards =
      counter("tier_unpromoted_shards", "Shards loaded from below that could not be kept here");
  final Counter divertedShards =
      counter("tier_diverted_shards", "Shards dumped straight to the next stage, refused here");
  final Counter writtenBlocks =
      counter("tier_written_blocks", "Blocks written from here to the next stage");
  final Counter writeFailedBlocks =
      counter("tier_write_failed_blocks", "Blocks that could not be written to it");
  final Counter keptBlocks =
      counter("tier_kept_blocks", "Cold blocks not removed, as they are nowhere else");
  final Counter refusedShards =
      counter("tier_refused_shards", "Shards not moved, as the next stage is given up");

  TierMetrics(StoreKind kind, StoreMetrics all) {
    // First, as all counters are made of it.
    registry = kind.metrics(all);
    super();
  }

  private Counter counter(String name, String help) {
    return registry.counter(name, help);
  }
}
