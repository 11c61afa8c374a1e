package ucm.store.nfs;

import java.util.Set;
import ucm.api.BlockIds;
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

  /** Adds its blocks, an id each. */
  void addBlocks(Set<BlockIds> blocks) {
    BlockIds ids = transfer.ids();
    for (int i = 0; i < ids.size(); i++) {
      blocks.add(ids.slice(i, i + 1));
    }
  }

  /** Where the chunk ends that begins with {@link #taken}: whole blocks if they are not too large. */
  int chunkEnd(int most) {
    int shards = transfer.shardCount();
    int limit = Math.min(shards, taken + most);
    int end = limit;
    BlockIds ids = transfer.ids();
    while (end > taken
        && end < shards
        && ids.high(end) == ids.high(end - 1)
        && ids.low(end) == ids.low(end - 1)) {
      end--;
    }
    return end == taken ? limit : end;
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
