package ucm.store.nfs;

import org.jspecify.annotations.Nullable;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;

/**
 * A load or dump of device memory under way. Its shards go through the buffers in chunks.
 *
 * <p>The thread that begins a shard, one of the device to copy it or the timeout scheduler because the
 * deadline has passed, is the only one to end it: the engine's memory is not touched after that,
 * whatever the file system still does with a buffer. Thread-safe.
 */
final class StagedTransfer {

  final TransferTask task;
  final Transfer transfer;
  final boolean isDump;
  final long deadlineNanos;

  // Guarded by the lock of Staging: shards that have been given to chunks.
  int taken;

  // Guarded by the lock of UnsettledDumps: shards of a dump that the files have taken over or that
  // have failed.
  int settled;

  StagedTransfer(TransferTask task, boolean isDump, long deadlineNanos) {
    this.task = task;
    this.transfer = task.transfer();
    this.isDump = isDump;
    this.deadlineNanos = deadlineNanos;
  }

  /** Takes a shard to end it; false when another thread has. */
  boolean begin(int shard) {
    return task.begin(shard);
  }

  /** Ends a shard that the caller has begun. */
  void end(int shard, ShardOutcome outcome, @Nullable Throwable cause) {
    task.end(shard, outcome, cause);
  }

  /** Ends a shard unless another thread has begun it; returns whether it did. */
  boolean endUnlessBegun(int shard, ShardOutcome outcome, @Nullable Throwable cause) {
    boolean mine = begin(shard);
    if (mine) {
      end(shard, outcome, cause);
    }
    return mine;
  }

  /** Why it is ended at its deadline. */
  StoreException timeout() {
    return new StoreException(
        "task "
            + task.id()
            + " of "
            + transfer
            + " passed its deadline before all of it was moved: raise timeout_ms or buffer_number,"
            + " or find out what holds up the file system");
  }

  /** Whether a shard is of the same block as the one before it. */
  boolean continuesBlock(int shard) {
    return transfer.ids().high(shard) == transfer.ids().high(shard - 1)
        && transfer.ids().low(shard) == transfer.ids().low(shard - 1);
  }

  @Override
  public String toString() {
    return (isDump ? "dump " : "load ") + task;
  }
}
