package ucm.store.file.tier;

import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.IndexLookup;
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
    BitSet above = load.known();
    BitSet below = load.knownBelow(above);
    BitSet others = new BitSet();
    others.set(0, all.size());
    others.andNot(above);
    others.andNot(below);
    if (!below.isEmpty()) {
      load.new LowerPart(all.at(below)).start();
    }
    for (BitSet tried : List.of(others, above)) {
      if (tried.cardinality() == all.size()) {
        load.new UpperPart(all).start();
      } else if (!tried.isEmpty()) {
        load.new UpperPart(all.at(tried)).start();
      }
    }
  }

  private BitSet known() {
    BitSet known =
        tiers.upper() instanceof IndexLookup index
            ? index.lookupKnown(task.transfer().ids())
            : null;
    return known == null ? new BitSet() : known;
  }

  /** What the lower tier had not long ago, and the upper one is not known to have, need not be tried there. */
  private BitSet knownBelow(BitSet above) {
    BitSet below = new BitSet();
    BlockIds ids = task.transfer().ids();
    if (tiers.lower().refusal() == null) {
      for (int i = above.nextClearBit(0); i < ids.size(); i = above.nextClearBit(i + 1)) {
        below.set(i, tiers.below().contains(ids.high(i), ids.low(i)));
      }
    }
    return below;
  }

  /** Shards that are tried in the upper tier. */
  private final class UpperPart implements ShardListener, Runnable {

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
      started.whenTerminal(this);
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

    /** The upper tier is done. */
    @Override
    public void run() {
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
  private final class LowerPart implements ShardListener, Runnable {

    private final ShardSelection shards;
    private final Transfer transfer;
    private @Nullable Task started;

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
      started = load;
      load.whenTerminal(this);
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

    /** The lower tier is done. */
    @Override
    public void run() {
      TransferResult result = Objects.requireNonNull(started).result();
      BitSet failed = result.failedShards();
      BitSet loaded = new BitSet();
      loaded.set(0, shards.size());
      loaded.andNot(failed);
      tiers.promotions().loaded(transfer, tiers.noted(transfer.ids(), loaded));
      for (int i = failed.nextSetBit(0); i >= 0; i = failed.nextSetBit(i + 1)) {
        task.end(shards.shard(i), result.outcome(i), result.cause());
      }
    }
  }
}
