package ucm.store.nfs;

import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;

/**
 * A load or dump of device memory under way. Its shards go through the buffers in chunks.
 *
 * <p>The thread that begins a shard, one of the device to copy it or the one of the timeouts, is the only
 * one to end it: the engine's memory is not touched after that, whatever the file system still does with
 * a buffer.
 */
final class StagedTransfer {

  final TransferTask task;
  final Transfer transfer;
  final boolean isDump;
  final long deadlineNanos;

  // Guarded by the lock of Staging: shards given to chunks, and chunks that the files do not have
  // yet.
  int taken;
  int openChunks;

  StagedTransfer(TransferTask task, boolean isDump, long deadlineNanos) {
    this.task = task;
    this.transfer = task.transfer();
    this.isDump = isDump;
    this.deadlineNanos = deadlineNanos;
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
}
