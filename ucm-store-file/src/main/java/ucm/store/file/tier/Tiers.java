package ucm.store.file.tier;

import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.api.IndexLookup;
import ucm.api.QueueFullException;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/**
 * Two tiers and what goes on between them, while their store is open.
 *
 * <p>A load takes each shard from the upper one, and from the lower one when it did not end well there, for
 * whatever reason. What only the lower one is known to have is loaded from there at once, side by side with the
 * rest. A dump goes to the upper one; blocks that it refuses or fails to write, as when its disk is full, go to
 * the lower one instead, straight from the caller's memory.
 */
record Tiers(
    Store upper,
    LowerTier lower,
    Promotions promotions,
    TierWrites writes,
    boolean writesThrough,
    TierMetrics metrics,
    LongSupplier clock) {

  /** Starts a load; all of its shards end by this. */
  void load(TransferTask task) {
    beginAll(task);
    promotions.loadBegan();
    task.whenTerminal(promotions::loadEnded);
    BitSet above = known(upper, task.transfer().ids());
    BitSet below = knownBelow(task, above);
    BitSet others = others(task.transfer().shardCount(), above, below);
    if (!below.isEmpty()) {
      loadFromLower(task, below.stream().toArray());
    }
    for (BitSet tried : List.of(others, above)) {
      if (!tried.isEmpty()) {
        loadFromUpper(task, tried.stream().toArray());
      }
    }
  }

  /** What the lower tier had not long ago, and the upper one is not known to have, need not be tried there. */
  private BitSet knownBelow(TransferTask task, BitSet above) {
    BitSet below = new BitSet();
    BlockIds ids = task.transfer().ids();
    if (lower.refusal() == null) {
      for (int i = above.nextClearBit(0); i < ids.size(); i = above.nextClearBit(i + 1)) {
        below.set(i, lower.hasHad(ids.high(i), ids.low(i)));
      }
    }
    return below;
  }

  private void loadFromUpper(TransferTask task, int... shards) {
    ShardListener listener =
        (_, shard, outcome) -> {
          if (outcome == ShardOutcome.OK) {
            metrics.upperLoadShards.increment();
            task.ok(shards[shard]);
          }
        };
    Task load;
    try {
      load = upper.load(task.transfer().select(shards, listener));
    } catch (RuntimeException _) {
      // It has enough to do, or is closed: the lower tier may have them.
      loadFromLower(task, shards);
      return;
    }
    load.whenTerminal(
        () -> {
          BitSet failed = load.result().failedShards();
          if (!failed.isEmpty()) {
            loadFromLower(task, failed.stream().map(i -> shards[i]).toArray());
          }
        });
  }

  private void loadFromLower(TransferTask task, int... shards) {
    StoreException refusal = lower.refusal();
    if (refusal != null) {
      metrics.refusedShards.add(shards.length);
      end(task, shards, ShardOutcome.REFUSED, refusal);
      return;
    }
    if (isPast(task)) {
      end(task, shards, ShardOutcome.EXPIRED, expiry(task));
      return;
    }
    // The shards that fail are told with their cause when all have ended.
    ShardListener listener =
        (_, shard, outcome) -> {
          lower.answered();
          if (outcome == ShardOutcome.OK) {
            metrics.lowerLoadShards.increment();
            task.ok(shards[shard]);
          }
        };
    Transfer transfer = task.transfer().select(shards, listener);
    start(
        task,
        shards,
        () -> lower.load(transfer),
        result -> {
          BitSet failed = result.failedShards();
          BitSet loaded = others(shards.length, failed);
          lower.had(transfer.ids(), loaded);
          promotions.loaded(transfer, loaded);
          failed.stream().forEach(i -> task.end(shards[i], result.outcome(i), result.cause()));
        });
  }

  /** Starts a dump; all of its shards end by this. */
  void dump(TransferTask task) {
    Transfer whole = task.transfer();
    Transfer unheard =
        whole.listener().equals(ShardListener.NONE)
            ? whole
            : whole.select(IntStream.range(0, whole.shardCount()).toArray(), ShardListener.NONE);
    beginAll(task);
    Task dump = upper.dump(unheard);
    dump.whenTerminal(() -> dumped(task, dump.result()));
  }

  private void dumped(TransferTask task, TransferResult result) {
    BitSet diverted = result.ok() ? new BitSet() : shardsOfFailedBlocks(task.transfer(), result);
    BitSet stored = others(task.transfer().shardCount(), diverted);
    // First: a caller that has waited for the task may flush.
    writeOn(task.transfer().ids(), stored);
    stored.stream().forEach(task::ok);
    if (!diverted.isEmpty()) {
      divert(task, result, diverted.stream().toArray());
    }
  }

  /** What of a block was written before another shard failed is of no use. */
  private static BitSet shardsOfFailedBlocks(Transfer transfer, TransferResult result) {
    BlockIds ids = transfer.ids();
    Set<BlockIds> failed = new HashSet<>();
    result.failedShards().stream().forEach(i -> failed.add(ids.slice(i, i + 1)));
    BitSet all = new BitSet();
    for (int i = 0; i < transfer.shardCount(); i++) {
      all.set(i, failed.contains(ids.slice(i, i + 1)));
    }
    return all;
  }

  private void writeOn(BlockIds ids, BitSet stored) {
    if (writesThrough && !stored.isEmpty()) {
      // A block that comes layer by layer is known when it is whole.
      BitSet whole = known(upper, ids);
      whole.and(stored);
      var _ = writes.offer(ids.select(0, whole));
    }
  }

  private void divert(TransferTask task, TransferResult above, int... shards) {
    if (lower.refusal() != null || isPast(task)) {
      metrics.refusedShards.add(shards.length);
      for (int shard : shards) {
        ShardOutcome outcome = above.outcome(shard);
        task.end(shard, outcome == ShardOutcome.OK ? ShardOutcome.FAILED : outcome, above.cause());
      }
      return;
    }
    metrics.divertedShards.add(shards.length);
    BlockIds ids = task.transfer().ids();
    start(
        task,
        shards,
        () -> lower.dump(task.transfer().select(shards, ShardListener.NONE)),
        result -> {
          for (int i = 0; i < shards.length; i++) {
            boolean isOk = result.outcome(i) == ShardOutcome.OK;
            if (isOk) {
              lower.had(ids.high(shards[i]), ids.low(shards[i]));
            }
            task.end(shards[i], result.outcome(i), isOk ? null : result.cause());
          }
        });
  }

  /** Takes all shards of a task, whose memory the tiers then have until they end. */
  private static void beginAll(TransferTask task) {
    for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
      var _ = task.begin(shard);
    }
  }

  /**
   * Starts to move some shards of a task in a stage. When the stage does not take them, they end at once.
   */
  private static void start(
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

  private static void end(TransferTask task, int[] shards, ShardOutcome outcome, Throwable why) {
    for (int shard : shards) {
      task.end(shard, outcome, why);
    }
  }

  private boolean isPast(TransferTask task) {
    return clock.getAsLong() - task.deadlineNanos() >= 0;
  }

  private StoreTimeoutException expiry(TransferTask task) {
    return new StoreTimeoutException(
        ("%s passed the deadline of %s before the next stage was asked: raise timeout_ms, or find"
                + " out what holds it up")
            .formatted(upper, task));
  }

  /** Which blocks a stage knows to have without asking its volume. */
  static BitSet known(Store stage, BlockIds ids) {
    BitSet known = stage instanceof IndexLookup index ? index.lookupKnown(ids) : null;
    return known == null ? new BitSet() : known;
  }

  /** Those of so many that are in none of some sets. */
  private static BitSet others(int count, BitSet... sets) {
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
}
