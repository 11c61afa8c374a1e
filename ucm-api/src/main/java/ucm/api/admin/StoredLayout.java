package ucm.api.admin;

/**
 * The layout of a stored block, as far as the block itself tells it. All sizes are bytes.
 *
 * @param blockSize of the block
 * @param shardSize of each of its shards; divides it
 * @param tensorCount tensors of a shard
 * @param tensorSize of each tensor; 0 when they differ in size
 */
public record StoredLayout(long blockSize, long shardSize, int tensorCount, long tensorSize) {

  /** How many shards. */
  public long shardCount() {
    return blockSize / shardSize;
  }
}
