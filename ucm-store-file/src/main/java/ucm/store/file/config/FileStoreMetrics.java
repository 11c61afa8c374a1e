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

    /** A task has ended. */
    public void ended(long bytes, long waitNanos, long nanos) {
      millis.record(nanos / NANOS_PER_MS);
      waitMillis.record(waitNanos / NANOS_PER_MS);
      bandwidth.record(bytes / (double) Math.max(1, nanos));
    }
  }

  private final StoreMetrics metrics;

  public final Counter loadShards = counter("load_shards", "Shards loaded");
  public final Counter loadBytes = counter("load_bytes", "Bytes loaded");
  public final Counter missingShards =
      counter("load_missing_shards", "Shards to load that were not there");
  public final Counter corruptBlocks =
      counter("corrupt_blocks", "Blocks found damaged or of another layout");
  public final Counter quarantinedBlocks =
      counter("quarantined_blocks", "Damaged blocks taken out of the tree");
  public final Counter unverifiedShards =
      counter("unverified_load_shards", "Shards loaded from files without checksums");
  public final Counter dumpShards = counter("dump_shards", "Shards written");
  public final Counter dumpBytes = counter("dump_bytes", "Bytes written");
  public final Counter committedBlocks = counter("committed_blocks", "Blocks that became visible");
  public final Counter presentBlocks =
      counter("dump_present_blocks", "Blocks not dumped because they were there");
  public final Counter failedBlocks = counter("dump_failed_blocks", "Blocks whose dump failed");
  public final Counter givenUpBlocks =
      counter("given_up_blocks", "Blocks of which shards never came");
  public final Counter lookupBlocks = counter("lookup_blocks", "Blocks looked up");
  public final Counter lookupHitBlocks = counter("lookup_hit_blocks", "Blocks looked up and found");
  public final Counter lookupKnownBlocks =
      counter("lookup_index_hit_blocks", "Blocks looked up and found without asking the disk");
  public final Counter lookupErrors =
      counter("lookup_errors", "Look-ups of a block that the file system failed");
  public final Counter lookupExpiries =
      counter("lookup_expiries", "Look-ups that the file system did not answer in time");
  public final Counter scannedFiles =
      counter("index_scanned_files", "Files seen by the scan when a store opens");
  public final Counter orphanFiles =
      counter("orphan_files", "Temporary files of dead writers removed");
  public final Counter refusedBlocks =
      counter("refused_blocks", "Blocks not written, for want of space");
  public final Tasks loads = tasks("load", "s2h_bandwidth_gbps");
  public final Tasks dumps = tasks("dump", "h2s_bandwidth_gbps");

  public FileStoreMetrics(StoreMetrics metrics) {
    // First, as all others are made of it.
    this.metrics = metrics;
    super();
  }

  private Counter counter(String name, String help) {
    return metrics.counter(name, help);
  }

  private Tasks tasks(String prefix, String bandwidth) {
    return new Tasks(
        metrics.histogram(
            prefix + "_task_duration_ms", "From the submission of a task to its end (ms)."),
        metrics.histogram(
            prefix + "_queue_wait_duration_ms",
            "From the submission of a task until a worker takes it (ms)."),
        metrics.histogram(bandwidth, "Bytes of a task in the time that it took (GB/s)."));
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
