package ucm.store.cache.pool;

import java.util.Arrays;
import ucm.store.cache.eviction.BlockTable;
import ucm.store.cache.eviction.CachePolicy;
import ucm.store.cache.eviction.EvictionOrder;

/**
 * The slots of one stripe of the pool as a state machine, the blocks they belong to, and the order in
 * which these are evicted.
 *
 * <pre>
 *   FREE --take--> LOADING | DUMPING --ready--> READY --evicted--> FREE
 *                        |                        |
 *                     orphan                    orphan
 *                        +--------> ORPHAN <------+   --last reference gone--> FREE
 * </pre>
 *
 * <p>A task that fills, reads or writes on a slot holds a reference; only a READY slot without references is
 * evicted. An ORPHAN is not found by look-ups and lives on until its references go. Guarded by the
 * stripe's lock, except {@link #isComplete}.
 */
public final class StripeSlots {

  static final byte FREE = 0;
  static final byte LOADING = 1;
  public static final byte DUMPING = 2;
  static final byte READY = 3;
  static final byte ORPHAN = 4;

  private static final int LEAST_BLOCKS = 256;
  private static final int NONE = BlockTable.NONE;

  private final int shards;
  private final EvictionOrder order;
  private final byte[] states;
  private final int[] references;
  private final int[] entries;
  private final int[] shardOf;
  private final int[] free;
  private BlockTable table;
  private int freeCount;
  private int idleCount;
  private long evicted;
  private int hand;

  /**
   * Free slots.
   *
   * @param slots how many
   * @param shards shards in a block
   * @param policy which blocks are evicted first
   */
  public StripeSlots(int slots, int shards, CachePolicy policy) {
    this.shards = shards;
    // Room for all the blocks that fit in whole; blocks of which only some shards come may be more.
    int blocks = Math.min(slots, Math.max(LEAST_BLOCKS, slots / shards));
    this.table = new BlockTable(shards, blocks);
    this.order = policy.order(blocks, Math.max(1, slots / shards));
    this.states = new byte[slots];
    this.references = new int[slots];
    this.entries = new int[slots];
    this.shardOf = new int[slots];
    this.free = new int[slots];
    Arrays.fill(entries, NONE);
    // The lowest slot is on top: shards that come together lie together.
    for (int slot = slots - 1; slot >= 0; slot--) {
      free[freeCount++] = slot;
    }
  }

  /** Whether all shards of a block are READY; a guess during a write. */
  boolean isComplete(long hash, long high, long low) {
    BlockTable now = table;
    int entry = now.find(hash, high, low);
    return entry != NONE && now.ready(entry) == shards;
  }

  /** Whether a shard of the block was dumped and some shard is still here. */
  boolean wasDumped(long hash, long high, long low) {
    int entry = table.find(hash, high, low);
    return entry != NONE && table.wasDumped(entry);
  }

  /** Whether shards of a block were dumped, and some are to come or are referenced. */
  boolean isBeingDumped(long hash, long high, long low) {
    int entry = table.find(hash, high, low);
    return entry != NONE
        && table.wasDumped(entry)
        && (table.ready(entry) < shards || table.busy(entry) > 0);
  }

  /** The slot of a shard, or {@link BlockTable#NONE}. */
  public int find(long hash, long high, long low, int shard) {
    int entry = table.find(hash, high, low);
    return entry == NONE ? NONE : table.slot(entry, shard);
  }

  byte state(int slot) {
    return states[slot];
  }

  /**
   * Takes a slot for a shard, with one reference; a slot that has the shard already becomes an orphan.
   *
   * @param state LOADING or DUMPING
   * @return the slot, or {@link BlockTable#NONE} when all are referenced
   */
  public int take(long hash, long high, long low, int shard, byte state) {
    int slot = takeAny();
    if (slot == NONE) {
      return NONE;
    }
    // Taking a slot may have evicted shards of this very block: look now, not before.
    int displaced = find(hash, high, low, shard);
    if (displaced != NONE) {
      orphan(displaced);
    }
    int entry = table.find(hash, high, low);
    if (entry == NONE) {
      entry = addBlock(high, low);
    }
    table.putSlot(entry, shard, slot);
    addBusy(entry);
    if (state == DUMPING) {
      table.markDumped(entry);
    }
    states[slot] = state;
    references[slot] = 1;
    entries[slot] = entry;
    shardOf[slot] = shard;
    return slot;
  }

  /** Takes a slot that belongs to no block, as an orphan with one reference. */
  int takeOrphan() {
    int slot = takeAny();
    if (slot != NONE) {
      states[slot] = ORPHAN;
      references[slot] = 1;
    }
    return slot;
  }

  /** Makes a slot that was being filled READY, unless it is an orphan by now. */
  public void ready(int slot) {
    if (states[slot] != ORPHAN) {
      states[slot] = READY;
      table.addReady(entries[slot], 1);
    }
  }

  /** Adds a reference. */
  public void reference(int slot) {
    if (references[slot]++ == 0) {
      idleCount--;
      addBusy(entries[slot]);
    }
  }

  /** Tells the policy that a shard which is READY is wanted again. */
  public void use(int slot) {
    // A load or dump of a block takes all its shards, in one task or in many: one of them counts.
    if (shardOf[slot] == 0) {
      order.use(entries[slot]);
    }
  }

  /** Takes a reference away; whether the slot can now be taken by others. */
  public boolean release(int slot) {
    if (--references[slot] > 0) {
      return false;
    }
    if (states[slot] == ORPHAN) {
      toFree(slot);
    } else {
      idleCount++;
      int entry = entries[slot];
      if (table.addBusy(entry, -1) == 0) {
        order.idle(entry);
      }
    }
    return true;
  }

  /** Takes a referenced slot from its block, unless that has happened. */
  void orphan(int slot) {
    if (states[slot] == ORPHAN) {
      return;
    }
    int entry = entries[slot];
    if (table.addBusy(entry, -1) == 0 && table.held(entry) > 1) {
      order.idle(entry);
    }
    detach(slot);
    states[slot] = ORPHAN;
  }

  /** Takes all slots from a block, and says how many became free. */
  int drop(long hash, long high, long low) {
    int entry = table.find(hash, high, low);
    return entry == NONE ? 0 : dropShards(entry);
  }

  /** Drops the blocks of which only some shards were dumped, and says how many slots became free. */
  int dropUnfinished() {
    int freed = 0;
    for (int entry = 0; entry < table.capacity(); entry++) {
      if (table.held(entry) > 0 && table.wasDumped(entry) && table.ready(entry) < shards) {
        freed += dropShards(entry);
      }
    }
    return freed;
  }

  /** Slots that are not FREE. */
  int inUse() {
    return states.length - freeCount;
  }

  /** Slots with references. */
  int referenced() {
    return states.length - freeCount - idleCount;
  }

  /** How many shards were evicted since this was asked last. */
  long takeEvicted() {
    long count = evicted;
    evicted = 0;
    return count;
  }

  private int takeAny() {
    if (freeCount == 0 && !evict()) {
      return NONE;
    }
    return free[--freeCount];
  }

  private boolean evict() {
    if (idleCount == 0) {
      return false;
    }
    int entry = order.victim();
    if (entry != NONE) {
      order.evicted(entry, table.high(entry), table.low(entry));
      evicted += dropShards(entry);
      return true;
    }
    // Every block has a shard in use, as when the blocks under way fill the pool: take single
    // shards.
    while (states[hand] != READY || references[hand] > 0) {
      hand = hand + 1 == states.length ? 0 : hand + 1;
    }
    // The shards that stay no longer tell whether those that are not here were dumped.
    table.unmarkDumped(entries[hand]);
    dropIdle(hand);
    evicted++;
    return true;
  }

  private int dropShards(int entry) {
    int freed = 0;
    // The entry is gone, and may not be touched, once its last slot is.
    int left = table.held(entry);
    // Backwards, so that the next block finds its slots in the order of memory.
    for (int shard = shards - 1; left > 0; shard--) {
      int slot = table.slot(entry, shard);
      if (slot == NONE) {
        continue;
      }
      left--;
      if (references[slot] > 0) {
        orphan(slot);
      } else {
        dropIdle(slot);
        freed++;
      }
    }
    return freed;
  }

  private void dropIdle(int slot) {
    detach(slot);
    toFree(slot);
    idleCount--;
  }

  private void detach(int slot) {
    int entry = entries[slot];
    if (states[slot] == READY) {
      table.addReady(entry, -1);
    }
    table.clearSlot(entry, shardOf[slot]);
    entries[slot] = NONE;
    if (table.held(entry) == 0) {
      order.leave(entry);
      table.remove(entry);
    }
  }

  private void toFree(int slot) {
    states[slot] = FREE;
    free[freeCount++] = slot;
  }

  private int addBlock(long high, long low) {
    if (table.isFull()) {
      table = table.grown();
      order.grow(table.capacity());
    }
    int entry = table.add(high, low);
    order.enter(entry, high, low);
    return entry;
  }

  private void addBusy(int entry) {
    if (table.addBusy(entry, 1) == 1) {
      order.busy(entry);
    }
  }
}
