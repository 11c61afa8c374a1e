package ucm.store.file.transfer;

/** Moves shards one way: from files or into them. */
public interface ShardMover {

  /**
   * Moves shards of one block that follow one another in a transfer, and ends each of them. For those
   * not ended when it throws, the caller does it.
   *
   * @param from first shard, inclusive
   * @param to last shard, exclusive
   * @throws RuntimeException when the file system fails
   */
  void move(TransferJob job, int from, int to);

  /** Told of shards of a block that were not moved, because the deadline came first or it threw. */
  void notMoved(TransferJob job, int from, RuntimeException cause);
}
