package ucm.store.cache.transfer;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;

/**
 * Shards of a dump that have a slot each, on their way out of the engine's memory.
 *
 * <p>They are cut into groups, at the boundary of blocks where that is possible; when the last shard of
 * a group is in its slot, the group is written to the next stage in one transfer. The first group of a dump
 * is of some megabytes, so that writing begins soon, and each may have twice as many shards as the one
 * before, so that there are few; none is a large part of the pool, as its slots come free together.
 */
final class DumpCopy extends CopyBatch {

  /** So many bytes are in the first group, or one shard if that is larger. */
  static final long GROUP_BYTES = 4L << 20;

  // So many times as many shards may be added to a group until a block ends.
  private static final int OVERFLOW = 3;
  // So many times as many shards as the first group are in the largest.
  private static final int LARGEST = 16;
  // So many times the largest group fits into the pool.
  private static final int PARTS = 8;
  private static final int FIRST_GROUPS = 8;

  private final DumpTask dump;
  // The first shard of each group, and the end of the last one.
  private final int[] groupStarts;
  private final AtomicIntegerArray openInGroup;

  /** Takes over shards, each with the slot that it reserved. */
  DumpCopy(DumpTask dump, int[] shards, int[] slots) {
    super(dump, shards, slots, shards.length);
    this.dump = dump;
    this.groupStarts = groupStarts();
    int groups = groupStarts.length - 1;
    this.openInGroup = new AtomicIntegerArray(groups);
    for (int i = 0; i < groups; i++) {
      openInGroup.set(i, groupStarts[i + 1] - groupStarts[i]);
    }
  }

  private int[] groupStarts() {
    int size = shards.length;
    long first = Math.max(1, GROUP_BYTES / dump.transfer.layout().shardSize());
    long most = Math.max(first, Math.min(LARGEST * first, cache.memory.slots() / PARTS));
    long perGroup = Math.max(first, dump.groupShards);
    BlockIds ids = dump.transfer.ids();
    int[] starts = new int[FIRST_GROUPS];
    int group = 0;
    for (int i = 1; i < size; i++) {
      int length = i - starts[group];
      boolean sameBlock = DumpTask.isSameBlock(ids, shards[i], shards[i - 1]);
      if (length >= perGroup && (!sameBlock || length >= perGroup + OVERFLOW * first)) {
        if (group + 2 == starts.length) {
          starts = Arrays.copyOf(starts, 2 * starts.length);
        }
        starts[++group] = i;
        perGroup = Math.min(most, 2 * perGroup);
      }
    }
    starts[group + 1] = size;
    dump.groupShards = Math.min(most, 2 * perGroup);
    return Arrays.copyOf(starts, group + 2);
  }

  @Override
  protected void end(int from, int to) {
    boolean alone = cache.next == null;
    cache.metrics.dumpBytes.add(copiedBytes(from, to));
    cache.pool.filled(slots, from, to, alone);
    if (alone) {
      dump.settle(shards, from, to);
    }
    finishWell(from, to);
    int group = groupOf(from);
    for (int first = from; first < to; group++) {
      int end = Math.min(to, groupStarts[group + 1]);
      ended(group, end - first);
      first = end;
    }
    cache.writes.copied(to - from);
  }

  private int groupOf(int index) {
    int found = Arrays.binarySearch(groupStarts, index);
    return found >= 0 ? found : -found - 2;
  }

  private void ended(int group, int shardCount) {
    // The decrement publishes the slots to the thread that completes the group.
    if (openInGroup.addAndGet(group, -shardCount) == 0 && cache.next != null) {
      cache.writes.offer(new NextWrite(dump, this, groupStarts[group], groupStarts[group + 1]));
    }
  }

  @Override
  void givenUp(int shard, int slot, @Nullable Throwable cause) {
    cache.pool.notFilled(slot, ShardOutcome.MISSING, null);
    dump.failed(shard, cause);
    dump.settle(shard);
  }
}
