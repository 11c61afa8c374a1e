package ucm.store.cache.transfer;

import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import ucm.api.Places;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.pool.ObjectPool;

/**
 * Shards of a task and the slot of each, in arrays that the next task uses again.
 *
 * <p>One thread puts them in, then those who move them share them: how many uses there are is said
 * before the first of them begins, and each one is ended once. The arrays go back with the last
 * one, and are not to be had here any more. A use that is never ended, because a thread died, say,
 * keeps them from going back, which costs nothing but a later allocation.
 *
 * <p>Those who share them may overwrite what is theirs: a shard or slot that is done with gets a
 * negative number.
 */
final class ShardSlots {

  private static final int[] NONE = {};

  /** Indices into the task's transfer. */
  int[] shards = NONE;

  /** The slot of each of the shards. */
  int[] slots = NONE;

  private final ObjectPool<int[]> arrays;
  private final int most;
  private final AtomicInteger uses = new AtomicInteger();
  private int size;

  /**
   * No shards yet.
   *
   * @param most how many there can be; the arrays are taken with the first one
   */
  ShardSlots(ObjectPool<int[]> arrays, int most) {
    this.arrays = arrays;
    this.most = most;
  }

  /** Puts in a shard that has a slot. */
  void add(int shard, int slot) {
    if (size == 0) {
      shards = arrays.take(most);
      slots = arrays.take(most);
    }
    shards[size] = shard;
    slots[size++] = slot;
  }

  /** How many shards were put in. */
  int size() {
    return size;
  }

  /**
   * A transfer of shards between their slots and the next stage, those of an index on, to another
   * exclusive, that are not done with. They must have been put in in the order of their numbers.
   *
   * @param memory has the slots
   * @param of the task's transfer
   * @param places has none yet, and gets those of the slots
   */
  Transfer onward(
      PoolMemory memory, Transfer of, int from, int to, Places places, ShardListener listener) {
    int first = 0;
    int end = 0;
    for (int i = from; i < to; i++) {
      if (slots[i] >= 0) {
        first = places.size() == 0 ? shards[i] : first;
        end = shards[i] + 1;
        places.add(memory.region(slots[i]), memory.offset(slots[i]));
      }
    }
    if (end - first == places.size()) {
      return Transfer.packedRange(of, first, end, places, listener);
    }
    BitSet some = new BitSet(end - first);
    for (int i = from; i < to; i++) {
      if (slots[i] >= 0) {
        some.set(shards[i] - first);
      }
    }
    return Transfer.packedSelection(of, first, some, places, listener);
  }

  /** Says how many uses will be ended; called once, before the first of them begins. */
  void share(int count) {
    uses.set(count);
  }

  /**
   * Ends some uses; the caller does not look at the shards any more.
   *
   * @throws IllegalStateException when more uses are ended than there were
   */
  void endUse(int count) {
    int left = uses.addAndGet(-count);
    if (left < 0) {
      throw new IllegalStateException("shards were used " + -left + " times more than was said");
    }
    if (left == 0 && shards.length > 0) {
      int[] ownShards = shards;
      int[] ownSlots = slots;
      shards = NONE;
      slots = NONE;
      arrays.giveBack(ownShards, most);
      arrays.giveBack(ownSlots, most);
    }
  }
}
