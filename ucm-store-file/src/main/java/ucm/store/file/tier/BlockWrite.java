package ucm.store.file.tier;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.store.file.eviction.BlockUses;

/** A block on its way from the upper tier through staging memory to the lower one. Nothing in here waits. */
final class BlockWrite {

  private final WriteBehind writes;
  private final BlockIds id;
  private final int[] slots;
  private final Transfer transfer;

  BlockWrite(WriteBehind writes, BlockIds id, int[] slots) {
    this.writes = writes;
    this.id = id;
    this.slots = slots;
    Transfer.Builder builder = Transfer.packed(writes.layout).expect(slots.length);
    for (int shard = 0; shard < slots.length; shard++) {
      writes.staging.place(builder.shard(id, 0, shard), slots[shard]);
    }
    transfer = builder.build(BlockUses.NO_USE);
  }

  void start() {
    try {
      Task load = writes.upper.load(transfer);
      load.whenTerminal(() -> loaded(load.result()));
    } catch (RuntimeException e) {
      notStarted(e);
    }
  }

  private void loaded(TransferResult result) {
    if (!result.ok()) {
      int first = result.failedShards().nextSetBit(0);
      // One that was removed meanwhile is not to be written.
      boolean isGone = result.outcome(first) == ShardOutcome.MISSING;
      end(isGone ? null : new StoreException(result.toString(), result.cause()));
      return;
    }
    try {
      Task dump = writes.lower.dump(transfer);
      dump.whenTerminal(() -> dumped(dump.result()));
    } catch (RuntimeException e) {
      notStarted(e);
    }
  }

  private void dumped(TransferResult result) {
    writes.lower.ended(result);
    if (result.ok()) {
      writes.metrics.writtenBlocks().increment();
    }
    end(result.ok() ? null : new StoreException(result.toString(), result.cause()));
  }

  private void notStarted(RuntimeException why) {
    if (why instanceof QueueFullException) {
      writes.staging.give(slots);
      writes.again(id);
    } else {
      end(why);
    }
  }

  private void end(@Nullable Throwable why) {
    writes.staging.give(slots);
    writes.ended(id, why);
  }
}
