package ucm.store.nfs;

import java.util.BitSet;
import java.util.Set;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;

/**
 * A load or dump of device memory. Its shards go through the buffers in chunks; a dump is settled when the
 * files have all of it.
 *
 * <p>The thread that begins a shard, one of the device to copy it or the one of the deadlines, is the only
 * one to end it: the engine's memory is not touched after that, whatever the file system still does with
 * a buffer.
 */
final class StagedTask extends TransferTask {

  // Guarded by the lock of Staging: shards given to chunks, and chunks that are not done.
  int taken;
  int openChunks;

  private final Staging staging;
  // Guarded by itself.
  private final BitSet expired = new BitSet();

  StagedTask(long id, Transfer transfer, Staging staging) {
    super(id, transfer);
    this.staging = staging;
  }

  /** Where the chunk ends that begins with {@link #taken}: whole blocks if they are not too large. */
  int chunkEnd(int most) {
    BlockIds ids = transfer().ids();
    int limit = Math.min(ids.size(), taken + most);
    int end = limit;
    while (end > taken
        && end < ids.size()
        && ids.high(end) == ids.high(end - 1)
        && ids.low(end) == ids.low(end - 1)) {
      end--;
    }
    return end == taken ? limit : end;
  }

  void start() {
    staging.submit(this);
  }

  @Override
  protected void expire(StoreException why) {
    for (int shard = 0; shard < transfer().shardCount(); shard++) {
      if (begin(shard)) {
        synchronized (expired) {
          expired.set(shard);
        }
        end(shard, ShardOutcome.EXPIRED, why);
      }
    }
    staging.forget(this);
  }

  @Override
  protected boolean settlesWhenCompleted() {
    return false;
  }

  @Override
  protected void collectPending(Set<BlockIds> pending) {
    BlockIds ids = transfer().ids();
    synchronized (expired) {
      for (int i = expired.nextClearBit(0); i < ids.size(); i = expired.nextClearBit(i + 1)) {
        pending.add(BlockIds.of(ids.high(i), ids.low(i)));
      }
    }
  }
}
