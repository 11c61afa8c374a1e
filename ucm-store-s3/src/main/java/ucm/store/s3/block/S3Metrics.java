package ucm.store.s3.block;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;

/** What the store counts. Thread-safe. */
public final class S3Metrics {

  private final StoreMetrics metrics;

  public final Counter headRequests =
      counter("head_requests", "Questions whether an object is there");
  public final Counter getRequests = counter("get_requests", "Requests for bytes of an object");
  public final Counter putRequests = counter("put_requests", "Requests to store an object");
  public final Counter failedRequests =
      counter("failed_requests", "Requests that no server answered, or with an error of its own");
  public final Counter loadShards = counter("load_shards", "Shards loaded");
  public final Counter loadBytes = counter("load_bytes", "Bytes loaded");
  public final Counter missingShards =
      counter("load_missing_shards", "Shards to load that were not there");
  public final Counter corruptBlocks =
      counter("corrupt_blocks", "Blocks found damaged or of another layout");
  public final Counter dumpBytes = counter("dump_bytes", "Bytes stored");
  public final Counter storedBlocks = counter("committed_blocks", "Blocks stored");
  public final Counter presentBlocks =
      counter("dump_present_blocks", "Blocks not stored because they were there");
  public final Counter replacedBlocks =
      counter("replaced_blocks", "Objects replaced that were no whole blocks");
  public final Counter failedBlocks = counter("dump_failed_blocks", "Blocks whose dump failed");
  public final Counter givenUpBlocks =
      counter("given_up_blocks", "Blocks of which shards never came");
  public final Counter collectedBlocks =
      counter("collected_blocks", "Old blocks removed for s3_capacity_gb");
  public final Counter lookupBlocks = counter("lookup_blocks", "Blocks looked up");
  public final Counter lookupHitBlocks = counter("lookup_hit_blocks", "Blocks looked up and found");
  public final Counter lookupKnownBlocks =
      counter("lookup_known_blocks", "Blocks looked up and found without a request");

  public S3Metrics(StoreMetrics metrics) {
    this.metrics = metrics;
    super();
  }

  private Counter counter(String name, String help) {
    return metrics.counter("s3_" + name, help);
  }
}
