package ucm.store.file.tier;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/**
 * A dump into the upper of two tiers. Blocks that it refuses or fails to write, as when its disk is full, go
 * to the lower one instead, straight from the caller's memory.
 */
final class TierDump {

  private final Tiers tiers;
  private final TransferTask task;
  private final Transfer transfer;

  private TierDump(Tiers tiers, TransferTask task) {
    this.tiers = tiers;
    this.task = task;
    this.transfer = task.transfer();
  }

  /** Starts a task; all of its shards end by this. */
  static void start(Tiers tiers, TransferTask task) {
    Transfer whole = task.transfer();
    Transfer unheard =
        whole.listener().equals(ShardListener.NONE)
            ? whole
            : whole.select(Tiers.allShards(whole), ShardListener.NONE);
    Tiers.beginAll(task);
    Task dump = tiers.upper().dump(unheard);
    TierDump started = new TierDump(tiers, task);
    dump.whenTerminal(() -> started.dumped(dump.result()));
  }

  private void dumped(TransferResult result) {
    BitSet diverted = result.ok() ? new BitSet() : shardsOfFailedBlocks(result);
    BitSet stored = Tiers.others(transfer.shardCount(), diverted);
    // First: a caller that has waited for the task may flush.
    writeOn(stored);
    stored.stream().forEach(task::ok);
    if (!diverted.isEmpty()) {
      divert(diverted, result);
    }
  }

  /** What of a block was written before another shard failed is of no use. */
  private BitSet shardsOfFailedBlocks(TransferResult result) {
    Set<BlockIds> failed = new HashSet<>();
    result.failedShards().stream().forEach(i -> failed.add(transfer.ids().slice(i, i + 1)));
    BitSet all = new BitSet();
    for (int i = 0; i < transfer.shardCount(); i++) {
      all.set(i, failed.contains(transfer.ids().slice(i, i + 1)));
    }
    return all;
  }

  private void writeOn(BitSet stored) {
    if (tiers.writesThrough() && !stored.isEmpty()) {
      // A block that comes layer by layer is known when it is whole.
      BitSet whole = Tiers.known(tiers.upper(), transfer.ids());
      whole.and(stored);
      var _ = tiers.writes().offer(transfer.ids().select(0, whole));
    }
  }

  private void divert(BitSet shards, TransferResult above) {
    if (tiers.lower().refusal() != null || tiers.isPast(task)) {
      tiers.metrics().refusedShards().add(shards.cardinality());
      shards.stream()
          .forEach(
              i -> {
                ShardOutcome outcome = above.outcome(i);
                task.end(
                    i, outcome == ShardOutcome.OK ? ShardOutcome.FAILED : outcome, above.cause());
              });
      return;
    }
    tiers.metrics().divertedShards().add(shards.cardinality());
    int[] diverted = shards.stream().toArray();
    Tiers.start(
        task,
        diverted,
        () -> tiers.lower().dump(transfer.select(diverted, ShardListener.NONE)),
        result -> ended(diverted, result));
  }

  private void ended(int[] shards, TransferResult result) {
    for (int i = 0; i < shards.length; i++) {
      ShardOutcome outcome = result.outcome(i);
      int shard = shards[i];
      if (outcome == ShardOutcome.OK) {
        tiers.lower().had(transfer.ids().high(shard), transfer.ids().low(shard));
      }
      task.end(shard, outcome, outcome == ShardOutcome.OK ? null : result.cause());
    }
  }
}
