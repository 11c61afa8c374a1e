package ucm.store.file.config;

import ucm.api.BlockLayout;
import ucm.api.StoreMetrics;

/** What the store counts. */
public record FileStoreMetrics(
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

  public static FileStoreMetrics of(StoreMetrics metrics) {
    return new FileStoreMetrics(
        metrics.counter("load_shards", "Shards loaded"),
        metrics.counter("load_bytes", "Bytes loaded"),
        metrics.counter("load_missing_shards", "Shards to load that were not there"),
        metrics.counter("corrupt_blocks", "Blocks found damaged or of another layout"),
        metrics.counter("quarantined_blocks", "Damaged blocks taken out of the tree"),
        metrics.counter("unverified_load_shards", "Shards loaded from files without checksums"),
        metrics.counter("dump_shards", "Shards written"),
        metrics.counter("dump_bytes", "Bytes written"),
        metrics.counter("committed_blocks", "Blocks that became visible"),
        metrics.counter("dump_present_blocks", "Blocks not dumped because they were there"),
        metrics.counter("dump_failed_blocks", "Blocks whose dump failed"),
        metrics.counter("given_up_blocks", "Blocks of which shards never came"),
        metrics.counter("expired_shards", "Shards whose deadline passed first"),
        metrics.counter("lookup_blocks", "Blocks looked up"),
        metrics.counter("lookup_hit_blocks", "Blocks looked up and found"),
        metrics.counter(
            "lookup_index_hit_blocks", "Blocks looked up and found without asking the disk"),
        metrics.counter("lookup_errors", "Look-ups of a block that the file system failed"),
        metrics.counter("lookup_expiries", "Look-ups that the file system did not answer in time"),
        metrics.counter("index_scanned_files", "Files seen by the scan when a store opens"),
        metrics.counter("orphan_files", "Temporary files of dead writers removed"),
        metrics.counter("refused_blocks", "Blocks not written, for want of space"),
        TaskMetrics.of(metrics, false),
        TaskMetrics.of(metrics, true));
  }

  /** Counts shards written. */
  public void wrote(int shards, BlockLayout layout) {
    dumpShards.add(shards);
    dumpBytes.add(shards * layout.shardSize());
  }

  /** Counts a shard loaded. */
  public void loaded(BlockLayout layout) {
    loadShards.increment();
    loadBytes.add(layout.shardSize());
  }
}
