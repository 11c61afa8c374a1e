package ucm.store.file.tier;

import java.util.BitSet;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreTimeoutException;
import ucm.api.TransferTask;
import ucm.platform.table.ConcurrentBlockSet;

/**
 * Two tiers and what goes on between them, while their store is open.
 *
 * @param below blocks that the lower tier had, or was given, not long ago
 */
record Tiers(
    Store upper,
    LowerTier lower,
    Promotions promotions,
    WriteBehind writes,
    ConcurrentBlockSet below,
    boolean writesThrough,
    TierMetrics metrics,
    LongSupplier clock) {

  /** How many blocks are remembered. */
  static final int REMEMBERED_BLOCKS = 1 << 17;

  /** Takes all shards of a task, whose memory the tiers then have until they end. */
  static void beginAll(TransferTask task) {
    for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
      boolean _ = task.begin(shard);
    }
  }

  /** Remembers which blocks the lower tier was found to have. */
  BitSet noted(BlockIds ids, BitSet found) {
    for (int i = found.nextSetBit(0); i >= 0; i = found.nextSetBit(i + 1)) {
      boolean _ = below.add(ids.high(i), ids.low(i));
    }
    return found;
  }

  boolean isPast(TransferTask task) {
    return clock.getAsLong() - task.deadlineNanos() >= 0;
  }

  StoreTimeoutException expiry(TransferTask task) {
    return new StoreTimeoutException(
        upper
            + " passed the deadline of "
            + task
            + " before the next stage was asked: raise timeout_ms, or find out what holds it up");
  }
}
