package ucm.store.file.tier;

import java.util.BitSet;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/**
 * A load from two tiers: each shard from the upper one, and from the lower one when it did not end well
 * there, for whatever reason. What only the lower one is known to have is loaded from there at once, side by
 * side with the rest.
 */
final class TierLoad {

  private final Tiers tiers;
  private final TransferTask task;

  private TierLoad(Tiers tiers, TransferTask task) {
    this.tiers = tiers;
    this.task = task;
  }

  /** Starts a task; all of its shards end by this. */
  static void start(Tiers tiers, TransferTask task) {
    Tiers.beginAll(task);
    tiers.promotions().loadBegan();
    task.whenTerminal(tiers.promotions()::loadEnded);
    TierLoad load = new TierLoad(tiers, task);
    BitSet above = Tiers.known(tiers.upper(), task.transfer().ids());
    BitSet below = load.knownBelow(above);
    BitSet others = Tiers.others(task.transfer().shardCount(), above, below);
    if (!below.isEmpty()) {
      load.fromLower(below.stream().toArray());
    }
    for (BitSet tried : List.of(others, above)) {
      if (!tried.isEmpty()) {
        load.fromUpper(tried.stream().toArray());
      }
    }
  }

  /** What the lower tier had not long ago, and the upper one is not known to have, need not be tried there. */
  private BitSet knownBelow(BitSet above) {
    BitSet below = new BitSet();
    BlockIds ids = task.transfer().ids();
    if (tiers.lower().refusal() == null) {
      for (int i = above.nextClearBit(0); i < ids.size(); i = above.nextClearBit(i + 1)) {
        below.set(i, tiers.lower().hasHad(ids.high(i), ids.low(i)));
      }
    }
    return below;
  }

  private void fromUpper(int[] shards) {
    ShardListener listener =
        (_, shard, outcome) -> {
          if (outcome == ShardOutcome.OK) {
            tiers.metrics().upperLoadShards().increment();
            task.ok(shards[shard]);
          }
        };
    Task load;
    try {
      load = tiers.upper().load(task.transfer().select(shards, listener));
    } catch (RuntimeException _) {
      // It has enough to do, or is closed: the lower tier may have them.
      fromLower(shards);
      return;
    }
    load.whenTerminal(
        () -> {
          BitSet failed = load.result().failedShards();
          if (!failed.isEmpty()) {
            fromLower(failed.stream().map(i -> shards[i]).toArray());
          }
        });
  }

  private void fromLower(int[] shards) {
    StoreException refusal = tiers.lower().refusal();
    if (refusal != null) {
      tiers.metrics().refusedShards().add(shards.length);
      Tiers.end(task, shards, ShardOutcome.REFUSED, refusal);
      return;
    }
    if (tiers.isPast(task)) {
      Tiers.end(task, shards, ShardOutcome.EXPIRED, tiers.expiry(task));
      return;
    }
    // The shards that fail are told with their cause when all have ended.
    ShardListener listener =
        (_, shard, outcome) -> {
          tiers.lower().answered();
          if (outcome == ShardOutcome.OK) {
            tiers.metrics().lowerLoadShards().increment();
            task.ok(shards[shard]);
          }
        };
    Transfer transfer = task.transfer().select(shards, listener);
    Tiers.start(
        task,
        shards,
        () -> tiers.lower().load(transfer),
        result -> loaded(shards, transfer, result));
  }

  private void loaded(int[] shards, Transfer transfer, TransferResult result) {
    BitSet failed = result.failedShards();
    BitSet loaded = Tiers.others(shards.length, failed);
    tiers.lower().had(transfer.ids(), loaded);
    tiers.promotions().loaded(transfer, loaded);
    for (int i = failed.nextSetBit(0); i >= 0; i = failed.nextSetBit(i + 1)) {
      task.end(shards[i], result.outcome(i), result.cause());
    }
  }
}
