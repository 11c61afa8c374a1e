package ucm.store.file.tier;

import java.util.BitSet;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.api.IndexLookup;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/** Two tiers and what goes on between them, while their store is open. */
record Tiers(
    Store upper,
    LowerTier lower,
    Promotions promotions,
    TierWrites writes,
    boolean writesThrough,
    TierMetrics metrics,
    LongSupplier clock) {

  /** Takes all shards of a task, whose memory the tiers then have until they end. */
  static void beginAll(TransferTask task) {
    for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
      var _ = task.begin(shard);
    }
  }

  static int[] allShards(Transfer of) {
    return IntStream.range(0, of.shardCount()).toArray();
  }

  /**
   * Starts to move some shards of a task in a stage. When the stage does not take them, they end at once.
   */
  static void start(
      TransferTask task, int[] shards, Supplier<Task> call, Consumer<TransferResult> then) {
    Task started;
    try {
      started = call.get();
    } catch (RuntimeException e) {
      ShardOutcome outcome =
          e instanceof QueueFullException ? ShardOutcome.REFUSED : ShardOutcome.FAILED;
      end(task, shards, outcome, e);
      return;
    }
    started.whenTerminal(() -> then.accept(started.result()));
  }

  static void end(TransferTask task, int[] shards, ShardOutcome outcome, Throwable why) {
    for (int shard : shards) {
      task.end(shard, outcome, why);
    }
  }

  /** Which blocks a stage knows to have without asking its volume. */
  static BitSet known(Store stage, BlockIds ids) {
    BitSet known = stage instanceof IndexLookup index ? index.lookupKnown(ids) : null;
    return known == null ? new BitSet() : known;
  }

  /** Those of so many that are in none of some sets. */
  static BitSet others(int count, BitSet... sets) {
    BitSet others = new BitSet();
    others.set(0, count);
    for (BitSet set : sets) {
      others.andNot(set);
    }
    return others;
  }

  /** Asks about the blocks that were not found, and adds those that are found now. */
  static void addMore(BlockIds ids, BitSet found, Function<BlockIds, BitSet> question) {
    BitSet rest = others(ids.size(), found);
    BitSet more = question.apply(ids.select(0, rest));
    int n = 0;
    for (int i = rest.nextSetBit(0); i >= 0; i = rest.nextSetBit(i + 1)) {
      found.set(i, more.get(n++));
    }
  }

  boolean isPast(TransferTask task) {
    return clock.getAsLong() - task.deadlineNanos() >= 0;
  }

  StoreTimeoutException expiry(TransferTask task) {
    return new StoreTimeoutException(
        ("%s passed the deadline of %s before the next stage was asked: raise timeout_ms, or find"
                + " out what holds it up")
            .formatted(upper, task));
  }
}
