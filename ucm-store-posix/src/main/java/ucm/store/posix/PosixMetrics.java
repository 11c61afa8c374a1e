package ucm.store.posix;

import ucm.api.BlockLayout;
import ucm.api.StoreMetrics;

/** What the store counts. */
record PosixMetrics(
    StoreMetrics.Counter loadShards,
    StoreMetrics.Counter loadBytes,
    StoreMetrics.Counter missingShards,
    StoreMetrics.Counter corruptBlocks,
    StoreMetrics.Counter quarantinedBlocks,
    StoreMetrics.Counter unverifiedShards,
    StoreMetrics.Counter dumpShards,
    StoreMetrics.Counter dumpBytes,
    StoreMetrics.Counter committedBlocks,
    StoreMetrics.Counter presentBlocks,
    StoreMetrics.Counter failedBlocks,
    StoreMetrics.Counter givenUpBlocks,
    StoreMetrics.Counter expiredShards,
    StoreMetrics.Counter lookupBlocks,
    StoreMetrics.Counter lookupHitBlocks,
    StoreMetrics.Counter lookupKnownBlocks,
    StoreMetrics.Counter lookupErrors,
    StoreMetrics.Counter lookupExpiries,
    StoreMetrics.Counter scannedFiles,
    StoreMetrics.Counter orphanFiles,
    StoreMetrics.Counter refusedBlocks,
    TaskMetrics loads,
    TaskMetrics dumps) {

  static PosixMetrics of(StoreMetrics metrics) {
    return new PosixMetrics(
        metrics.counter("posix_load_shards", "Shards loaded"),
        metrics.counter("posix_load_bytes", "Bytes loaded"),
        metrics.counter("posix_load_missing_shards", "Shards to load that were not there"),
        metrics.counter("posix_corrupt_blocks", "Blocks found damaged or of another layout"),
        metrics.counter("posix_quarantined_blocks", "Damaged blocks taken out of the tree"),
        metrics.counter(
            "posix_unverified_load_shards", "Shards loaded from files without checksums"),
        metrics.counter("posix_dump_shards", "Shards written"),
        metrics.counter("posix_dump_bytes", "Bytes written"),
        metrics.counter("posix_committed_blocks", "Blocks that became visible"),
        metrics.counter("posix_dump_present_blocks", "Blocks not dumped because they were there"),
        metrics.counter("posix_dump_failed_blocks", "Blocks whose dump failed"),
        metrics.counter("posix_given_up_blocks", "Blocks of which shards never came"),
        metrics.counter("posix_expired_shards", "Shards whose deadline passed first"),
        metrics.counter("posix_lookup_blocks", "Blocks looked up"),
        metrics.counter("posix_lookup_hit_blocks", "Blocks looked up and found"),
        metrics.counter(
            "posix_lookup_index_hit_blocks", "Blocks looked up and found without asking the disk"),
        metrics.counter("posix_lookup_errors", "Look-ups of a block that the file system failed"),
        metrics.counter(
            "posix_lookup_expiries", "Look-ups that the file system did not answer in time"),
        metrics.counter("posix_index_scanned_files", "Files seen by the scan when a store opens"),
        metrics.counter("posix_orphan_files", "Temporary files of dead writers removed"),
        metrics.counter("posix_refused_blocks", "Blocks not written, for want of space"),
        TaskMetrics.of(metrics, false),
        TaskMetrics.of(metrics, true));
  }

  /** Counts shards written. */
  void wrote(int shards, BlockLayout layout) {
    dumpShards.add(shards);
    dumpBytes.add(shards * layout.shardSize());
  }

  /** Counts a shard loaded. */
  void loaded(BlockLayout layout) {
    loadShards.increment();
    loadBytes.add(layout.shardSize());
  }
}
