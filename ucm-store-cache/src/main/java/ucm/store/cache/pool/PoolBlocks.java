package ucm.store.cache.pool;

import java.util.Arrays;
import java.util.function.IntPredicate;
import ucm.platform.eviction.EvictionOrder;
import ucm.platform.table.BlockTable;
import ucm.store.cache.config.CachePolicy;

/**
 * The blocks of a pool and the slot of each of their shards. A block is named by its entry in the
 * table. Guarded by the monitor of this.
 */
abstract class PoolBlocks {

  static final int NONE = BlockTable.NONE;

  private static final int LEAST_BLOCKS = 256;

  // What some JVMs take off the longest array.
  private static final int LONGEST_ARRAY = Integer.MAX_VALUE - 8;

  final int shards;

  /** How many blocks there may be: fewer than slots only in pools of TiBs with many shards a block. */
  final int maxBlocks;

  final BlockTable table;
  final EvictionOrder order;

  /** The slot of each shard of an entry, or {@link #NONE}. */
  int[] slots;

  /** By entry: how many shards are complete, have a slot, are referenced. */
  int[] ready;

  int[] held;
  int[] busy;

  /** By entry: whether shards were dumped here, and none of those was evicted alone. */
  boolean[] dumped;

  private final IntPredicate idle = this::isIdle;
  private int idleBlocks;

  /** No blocks yet, for so many slots. */
  PoolBlocks(int count, int shards, CachePolicy policy) {
    this.shards = shards;
    // Room for all the blocks that fit in whole; blocks of which only some shards come may be more.
    int least = Math.min(count, LEAST_BLOCKS);
    maxBlocks = Math.min(LONGEST_ARRAY / shards, BlockTable.MAX_SIZE);
    int blocks = Math.clamp(count / shards, least, maxBlocks);
    table = new BlockTable(blocks);
    order = policy.order(Math.max(1, count / shards));
    slots = new int[blocks * shards];
    ready = new int[blocks];
    held = new int[blocks];
    busy = new int[blocks];
    dumped = new boolean[blocks];
    Arrays.fill(slots, NONE);
  }

  /** The slot of a shard, or {@link #NONE}. */
  final int find(long high, long low, int shard) {
    int entry = table.find(high, low);
    return entry == NONE ? NONE : slots[entry * shards + shard];
  }

  /** The entry of a block, which is added if it is not there; the caller then gives it a slot. */
  final int put(long high, long low) {
    int before = table.size();
    int entry = table.put(high, low);
    if (table.size() > before) {
      if (entry >= ready.length) {
        grow(Math.max(entry + 1, Math.min(maxBlocks, ready.length + ready.length / 2)));
      }
      order.add(entry, BlockTable.hash(high, low));
      idleBlocks++;
    }
    return entry;
  }

  /** Removes a block without slots. */
  final void remove(int entry) {
    order.remove(entry);
    table.remove(entry);
    dumped[entry] = false;
    idleBlocks--;
  }

  /** Counts a shard that is referenced (1), or is not any more (-1). */
  final void addBusy(int entry, int change) {
    busy[entry] += change;
    if (busy[entry] == 0) {
      idleBlocks++;
    } else if (change > 0 && busy[entry] == 1) {
      idleBlocks--;
    }
  }

  /** The block to evict, which must follow; {@link #NONE} when each has a shard that is referenced. */
  final int victim() {
    return idleBlocks == 0 ? NONE : order.evict(idle);
  }

  private boolean isIdle(int entry) {
    return busy[entry] == 0;
  }

  private void grow(int length) {
    int before = slots.length;
    slots = Arrays.copyOf(slots, Math.multiplyExact(length, shards));
    Arrays.fill(slots, before, slots.length, NONE);
    ready = Arrays.copyOf(ready, length);
    held = Arrays.copyOf(held, length);
    busy = Arrays.copyOf(busy, length);
    dumped = Arrays.copyOf(dumped, length);
  }
}
