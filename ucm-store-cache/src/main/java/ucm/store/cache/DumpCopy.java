package ucm.store.cache;

import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.store.common.DeviceCopies;

/**
 * Shards of a dump that have a slot each, on their way out of the engine's memory.
 *
 * <p>They are cut into groups of some megabytes, at the boundary of blocks where that is possible; when
 * the last shard of a group is in its slot, the group is written to the backend in one transfer.
 */
final class DumpCopy extends CopyBatch {

  /** Stands for a shard that was not copied, and for its slot. */
  static final int NOT_COPIED = -1;

  /** So many bytes are written to the backend together. */
  static final long GROUP_BYTES = 4L << 20;

  private static final int MAX_OVERFLOW = 4;

  private final OpenCache cache;
  private final DumpWork dump;
  private final int[] shards;
  private final int[] slots;
  private final int[] groupOf;
  private final int[] groupStarts;
  private final AtomicIntegerArray openInGroup;

  /**
   * Takes over arrays.
   *
   * @param shards indices into the dump's transfer
   * @param slots the claimed slot of each
   * @param size how many of them count
   */
  DumpCopy(DumpWork dump, int[] shards, int[] slots, int size) {
    super(size, size, dump.transfer.layout().shardSize(), dump.cache.copyThreads);
    this.cache = dump.cache;
    this.dump = dump;
    this.shards = shards;
    this.slots = slots;
    this.groupOf = new int[size];
    long perGroup = Math.max(1, GROUP_BYTES / dump.transfer.layout().shardSize());
    BlockIds ids = dump.transfer.ids();
    int[] starts = new int[(int) (size / perGroup) + 2];
    int group = 0;
    for (int i = 0; i < size; i++) {
      int length = i - starts[group];
      boolean sameBlock =
          i > 0
              && ids.high(shards[i]) == ids.high(shards[i - 1])
              && ids.low(shards[i]) == ids.low(shards[i - 1]);
      if (length >= perGroup && (!sameBlock || length >= MAX_OVERFLOW * perGroup)) {
        starts[++group] = i;
      }
      groupOf[i] = group;
    }
    starts[group + 1] = size;
    this.groupStarts = starts;
    this.openInGroup = new AtomicIntegerArray(group + 1);
    for (int i = 0; i <= group; i++) {
      openInGroup.set(i, starts[i + 1] - starts[i]);
    }
  }

  @Override
  Work work() {
    return dump;
  }

  @Override
  protected void begin(int from, int to) {
    for (int i = from; i < to; i++) {
      if (!dump.begin(shards[i])) {
        giveUp(i, dump.expiry(), true);
      }
    }
  }

  @Override
  void copy(int from, int to) {
    for (int i = from; i < to; i++) {
      if (slots[i] != NOT_COPIED) {
        gather(i);
      }
    }
  }

  @Override
  protected void queue(DeviceCopies copies, int from, int to) {
    for (int i = from; i < to; i++) {
      if (slots[i] != NOT_COPIED) {
        copies.toSlot(dump.transfer, shards[i], slots[i]);
      }
    }
  }

  @Override
  protected void fail(int from, int to, Throwable cause, boolean done) {
    for (int i = from; i < to; i++) {
      if (slots[i] != NOT_COPIED) {
        fail(i, cause, done);
      }
    }
  }

  @Override
  protected void end(int from, int to) {
    boolean alone = cache.backend == null;
    int copied = 0;
    for (int i = from; i < to; i++) {
      copied += slots[i] == NOT_COPIED ? 0 : 1;
    }
    cache.metrics.dumpBytes.add(copied * dump.transfer.layout().shardSize());
    cache.pool.filled(slots, from, to, alone);
    if (alone) {
      dump.settle(copied);
    }
    dump.finishWell(shards, from, to);
    int first = from;
    for (int i = from; i < to; i++) {
      if (i + 1 == to || groupOf[i + 1] != groupOf[i]) {
        ended(groupOf[i], i + 1 - first);
        first = i + 1;
      }
    }
    cache.writes.copied(to - from);
  }

  private void ended(int group, int shardCount) {
    // The decrement publishes the slots to whoever makes the group complete.
    if (openInGroup.addAndGet(group, -shardCount) == 0 && cache.backend != null) {
      cache.writes.offer(
          new BackendWrite(cache, dump, shards, slots, groupStarts[group], groupStarts[group + 1]));
    }
  }

  private void gather(int index) {
    try {
      cache.device.toSlot(dump.transfer, shards[index], slots[index]);
    } catch (RuntimeException | Error e) {
      // The engine's memory is gone, say: the shard fails, and the copy thread lives on.
      fail(index, e, true);
    }
  }

  private void fail(int index, Throwable cause, boolean done) {
    int shard = shards[index];
    giveUp(index, cause, done);
    dump.finish(shard, ShardOutcome.FAILED, cause);
  }

  private void giveUp(int index, @Nullable Throwable cause, boolean done) {
    int slot = slots[index];
    cache.pool.notFilled(slot, ShardOutcome.MISSING, null);
    if (done) {
      cache.pool.release(slot);
    }
    dump.failed(shards[index], cause);
    slots[index] = NOT_COPIED;
    shards[index] = NOT_COPIED;
    if (cache.backend == null) {
      dump.settle(1);
    }
  }
}
