package ucm.store.file.config;

import ucm.api.BlockLayout;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;

/** What a store of files counts. Thread-safe. */
public final class FileStoreMetrics {

  private static final double NANOS_PER_MS = 1e6;

  /** What is counted of the tasks of one direction, under the names of the original. */
  public record Tasks(Histogram millis, Histogram waitMillis, Histogram bandwidth) {

    static Tasks of(StoreMetrics metrics, String prefix, String bandwidth) {
      return new Tasks(
          metrics.histogram(
              prefix + "_task_duration_ms", "From the submission of a task to its end (ms)."),
          metrics.histogram(
              prefix + "_queue_wait_duration_ms",
              "From the submission of a task until a worker takes it (ms)."),
          metrics.histogram(bandwidth, "Bytes of a task in the time that it took (GB/s)."));
    }

    /** A task has ended. */
    public void ended(long bytes, long waitNanos, long nanos) {
      millis.record(nanos / NANOS_PER_MS);
      waitMillis.record(waitNanos / NANOS_PER_MS);
      bandwidth.record(bytes / (double) Math.max(1, nanos));
    }
  }

  public final Counter loadShards;
  public final Counter loadBytes;
  public final Counter missingShards;
  public final Counter corruptBlocks;
  public final Counter quarantinedBlocks;
  public final Counter unverifiedShards;
  public final Counter dumpShards;
  public final Counter dumpBytes;
  public final Counter committedBlocks;
  public final Counter presentBlocks;
  public final Counter failedBlocks;
  public final Counter givenUpBlocks;
  public final Counter lookupBlocks;
  public final Counter lookupHitBlocks;
  public final Counter lookupKnownBlocks;
  public final Counter lookupErrors;
  public final Counter lookupExpiries;
  public final Counter scannedFiles;
  public final Counter orphanFiles;
  public final Counter refusedBlocks;
  public final Tasks loads;
  public final Tasks dumps;

  public FileStoreMetrics(StoreMetrics metrics) {
    loadShards = metrics.counter("load_shards", "Shards loaded");
    loadBytes = metrics.counter("load_bytes", "Bytes loaded");
    missingShards = metrics.counter("load_missing_shards", "Shards to load that were not there");
    corruptBlocks = metrics.counter("corrupt_blocks", "Blocks found damaged or of another layout");
    quarantinedBlocks =
        metrics.counter("quarantined_blocks", "Damaged blocks taken out of the tree");
    unverifiedShards =
        metrics.counter("unverified_load_shards", "Shards loaded from files without checksums");
    dumpShards = metrics.counter("dump_shards", "Shards written");
    dumpBytes = metrics.counter("dump_bytes", "Bytes written");
    committedBlocks = metrics.counter("committed_blocks", "Blocks that became visible");
    presentBlocks =
        metrics.counter("dump_present_blocks", "Blocks not dumped because they were there");
    failedBlocks = metrics.counter("dump_failed_blocks", "Blocks whose dump failed");
    givenUpBlocks = metrics.counter("given_up_blocks", "Blocks of which shards never came");
    lookupBlocks = metrics.counter("lookup_blocks", "Blocks looked up");
    lookupHitBlocks = metrics.counter("lookup_hit_blocks", "Blocks looked up and found");
    lookupKnownBlocks =
        metrics.counter(
            "lookup_index_hit_blocks", "Blocks looked up and found without asking the disk");
    lookupErrors =
        metrics.counter("lookup_errors", "Look-ups of a block that the file system failed");
    lookupExpiries =
        metrics.counter("lookup_expiries", "Look-ups that the file system did not answer in time");
    scannedFiles =
        metrics.counter("index_scanned_files", "Files seen by the scan when a store opens");
    orphanFiles = metrics.counter("orphan_files", "Temporary files of dead writers removed");
    refusedBlocks = metrics.counter("refused_blocks", "Blocks not written, for want of space");
    loads = Tasks.of(metrics, "load", "s2h_bandwidth_gbps");
    dumps = Tasks.of(metrics, "dump", "h2s_bandwidth_gbps");
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
