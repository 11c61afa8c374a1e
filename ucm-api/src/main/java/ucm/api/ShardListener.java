package ucm.api;

/**
 * Is told of each shard of a transfer as it ends, so that a stage can go on with one shard while
 * others are still on their way.
 */
@FunctionalInterface
public interface ShardListener {

  /** Does nothing. */
  ShardListener NONE = (transfer, shard, outcome) -> {};

  /**
   * Called exactly once for each shard, before the task completes, on a thread of the store
   * (or of the caller, when the outcome is known at once); calls for different shards may come at the
   * same time and in any order. May work on the shard's bytes, which the store does not touch any
   * more; must not block and must not throw.
   *
   * @param transfer the transfer as it was handed in
   * @param shard index of the shard within the transfer
   * @param outcome how it ended
   */
  void shardEnded(Transfer transfer, int shard, ShardOutcome outcome);
}
