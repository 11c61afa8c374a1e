package ucm.store.cache.transfer;

import java.util.Arrays;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.store.cache.config.PoolMemory;

/**
 * Shards of a task and the slot of each. One thread puts them in, then those who move them share them,
 * and may overwrite what is theirs: a shard or slot that is done with gets a negative number.
 */
final class ShardSlots {

  // A task much larger than the pool is planned again and again for a few slots each time.
  private static final int FIRST_CAPACITY = 64;

  /** Indices into the task's transfer. */
  int[] shards;

  /** The slot of each of the shards. */
  int[] slots;

  private int size;

  /**
   * No shards yet.
   *
   * @param most how many there can be
   */
  ShardSlots(int most) {
    this(new int[Math.min(most, FIRST_CAPACITY)], new int[Math.min(most, FIRST_CAPACITY)]);
  }

  private ShardSlots(int[] shards, int[] slots) {
    this.shards = shards;
    this.slots = slots;
  }

  /** With arrays that stay, as shards are put in while others are moved. */
  static ShardSlots fixed(int most) {
    return new ShardSlots(new int[most], new int[most]);
  }

  /** Puts in a shard that has a slot. */
  void add(int shard, int slot) {
    if (size == shards.length) {
      shards = Arrays.copyOf(shards, 2 * size);
      slots = Arrays.copyOf(slots, 2 * size);
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
   */
  Transfer onward(PoolMemory memory, Transfer of, int from, int to, ShardListener listener) {
    Transfer.Builder onward = Transfer.packed(of.layout()).expect(to - from);
    for (int i = from; i < to; i++) {
      int slot = slots[i];
      if (slot >= 0) {
        onward
            .shard(of.ids(), shards[i], of.shardIndex(shards[i]))
            .piece(memory.region(slot), memory.offset(slot));
      }
    }
    return onward.build(listener);
  }
}
