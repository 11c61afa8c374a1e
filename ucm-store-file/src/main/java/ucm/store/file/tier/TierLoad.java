package ucm.store.file.tier;

import java.util.BitSet;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.QueueFullException;
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
    ShardSelection all = ShardSelection.all(task.transfer());
    BitSet above = Tiers.known(tiers.upper(), task.transfer().ids());
    BitSet below = load.knownBelow(above);
    BitSet others = Tiers.others(all.size(), above, below);
    if (!below.isEmpty()) {
      load.new LowerPart(all.at(below)).start();
    }
    for (BitSet tried : List.of(others, above)) {
      if (!tried.isEmpty()) {
        load.new UpperPart(all.at(tried)).start();
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

  /** Shards that are tried in the upper tier. */
  private final class UpperPart implements ShardListener {

    private final ShardSelection shards;
    // Guarded by itself.
    private final BitSet failed = new BitSet();

    UpperPart(ShardSelection shards) {
      this.shards = shards;
    }

    void start() {
      Task started;
      try {
        started = tiers.upper().load(shards.transfer(this));
      } catch (RuntimeException _) {
        // It has enough to do, or is closed: the lower tier may have them.
        new LowerPart(shards).start();
        return;
      }
      started.whenTerminal(this::ended);
    }

    @Override
    public void shardEnded(Transfer transfer, int shard, ShardOutcome outcome) {
      if (outcome == ShardOutcome.OK) {
        tiers.metrics().upperLoadShards().increment();
        task.ok(shards.shard(shard));
      } else {
        synchronized (failed) {
          failed.set(shard);
        }
      }
    }

    private void ended() {
      BitSet left;
      synchronized (failed) {
        left = (BitSet) failed.clone();
      }
      if (!left.isEmpty()) {
        new LowerPart(shards.at(left)).start();
      }
    }
  }

  /** Shards that the upper tier has not. */
  private final class LowerPart implements ShardListener {

    private final ShardSelection shards;
    private final Transfer transfer;

    LowerPart(ShardSelection shards) {
      this.shards = shards;
      transfer = shards.transfer(this);
    }

    void start() {
      StoreException refusal = tiers.lower().refusal();
      if (refusal != null) {
        tiers.metrics().refusedShards().add(shards.size());
        endAll(ShardOutcome.REFUSED, refusal);
        return;
      }
      if (tiers.isPast(task)) {
        endAll(ShardOutcome.EXPIRED, tiers.expiry(task));
        return;
      }
      Task load;
      try {
        load = tiers.lower().load(transfer);
      } catch (RuntimeException e) {
        endAll(e instanceof QueueFullException ? ShardOutcome.REFUSED : ShardOutcome.FAILED, e);
        return;
      }
      load.whenTerminal(() -> ended(load.result()));
    }

    private void endAll(ShardOutcome outcome, RuntimeException why) {
      for (int i = 0; i < shards.size(); i++) {
        task.end(shards.shard(i), outcome, why);
      }
    }

    @Override
    public void shardEnded(Transfer part, int shard, ShardOutcome outcome) {
      tiers.lower().answered();
      if (outcome == ShardOutcome.OK) {
        tiers.metrics().lowerLoadShards().increment();
        task.ok(shards.shard(shard));
      }
      // The others are told with their cause when all have ended.
    }

    private void ended(TransferResult result) {
      BitSet failed = result.failedShards();
      BitSet loaded = Tiers.others(shards.size(), failed);
      tiers.lower().had(transfer.ids(), loaded);
      tiers.promotions().loaded(transfer, loaded);
      for (int i = failed.nextSetBit(0); i >= 0; i = failed.nextSetBit(i + 1)) {
        task.end(shards.shard(i), result.outcome(i), result.cause());
      }
    }
  }
}
