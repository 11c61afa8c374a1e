package ucm.store.cache.eviction;

import java.util.Arrays;

/**
 * The blocks of one stripe of the pool by their id, and the slot of each of their shards.
 *
 * <p>Open addressing with linear probing over primitive arrays; nothing is an object per block. An
 * entry keeps its number for life, also when the table grows. Guarded by the stripe's lock, except
 * that {@link #find} and {@link #ready} may also be called during a write: they then may answer
 * wrongly, but end and stay within bounds, and the caller validates.
 */
public final class BlockTable {

  /** No entry, or no slot. */
  public static final int NONE = -1;

  private final int shards;
  private final int bucketMask;
  // Entry + 1, or 0.
  private final int[] buckets;
  private final long[] ids;
  private final int[] slots;
  private final int[] ready;
  private final int[] held;
  private final int[] busy;
  private final boolean[] dumped;
  private final int[] unused;
  private int unusedCount;

  /**
   * An empty table.
   *
   * @param shards shards in a block
   * @param capacity how many blocks it can hold
   */
  public BlockTable(int shards, int capacity) {
    this.shards = shards;
    this.bucketMask = Integer.highestOneBit(Math.max(2, 2 * capacity - 1)) * 2 - 1;
    this.buckets = new int[bucketMask + 1];
    this.ids = new long[2 * capacity];
    this.slots = new int[Math.multiplyExact(capacity, shards)];
    this.ready = new int[capacity];
    this.held = new int[capacity];
    this.busy = new int[capacity];
    this.dumped = new boolean[capacity];
    this.unused = new int[capacity];
    Arrays.fill(slots, NONE);
    for (int entry = capacity - 1; entry >= 0; entry--) {
      unused[unusedCount++] = entry;
    }
  }

  /** A table of twice the capacity with the same entries under the same numbers; this one is full. */
  public BlockTable grown() {
    int capacity = ready.length;
    BlockTable grown = new BlockTable(shards, 2 * capacity);
    grown.unusedCount = capacity;
    System.arraycopy(ids, 0, grown.ids, 0, ids.length);
    System.arraycopy(slots, 0, grown.slots, 0, slots.length);
    System.arraycopy(ready, 0, grown.ready, 0, capacity);
    System.arraycopy(held, 0, grown.held, 0, capacity);
    System.arraycopy(busy, 0, grown.busy, 0, capacity);
    System.arraycopy(dumped, 0, grown.dumped, 0, capacity);
    for (int entry = 0; entry < capacity; entry++) {
      grown.intoBucket(entry);
    }
    return grown;
  }

  /** Spreads an id over 64 bits; ids are hashes already, but a test's or a third party's may not be. */
  public static long hash(long high, long low) {
    long mixed = (high * 0x9E3779B97F4A7C15L) ^ low;
    mixed = (mixed ^ (mixed >>> 32)) * 0xD6E8FEB86659FD93L;
    return mixed ^ (mixed >>> 32);
  }

  public boolean isFull() {
    return unusedCount == 0;
  }

  public int capacity() {
    return ready.length;
  }

  /** The entry of a block, or {@link #NONE}. */
  public int find(long hash, long high, long low) {
    int at = (int) hash & bucketMask;
    for (int step = 0; step <= bucketMask; step++) {
      int entry = buckets[at] - 1;
      if (entry < 0) {
        return NONE;
      }
      if (ids[2 * entry] == high && ids[2 * entry + 1] == low) {
        return entry;
      }
      at = (at + 1) & bucketMask;
    }
    return NONE;
  }

  /** Adds a block without slots; the table is not full and does not hold it. */
  public int add(long high, long low) {
    int entry = unused[--unusedCount];
    ids[2 * entry] = high;
    ids[2 * entry + 1] = low;
    ready[entry] = 0;
    held[entry] = 0;
    busy[entry] = 0;
    dumped[entry] = false;
    intoBucket(entry);
    return entry;
  }

  /** Removes a block that has no slots any more. */
  public void remove(int entry) {
    int at = home(entry);
    while (buckets[at] != entry + 1) {
      at = (at + 1) & bucketMask;
    }
    // Moves later entries of the probe run forward over the hole, so that no tombstone is needed.
    int hole = at;
    for (int next = (hole + 1) & bucketMask; buckets[next] != 0; next = (next + 1) & bucketMask) {
      int distance = (next - home(buckets[next] - 1)) & bucketMask;
      if (distance >= ((next - hole) & bucketMask)) {
        buckets[hole] = buckets[next];
        hole = next;
      }
    }
    buckets[hole] = 0;
    unused[unusedCount++] = entry;
  }

  /** The first half of a block's id. */
  public long high(int entry) {
    return ids[2 * entry];
  }

  /** The second half of a block's id. */
  public long low(int entry) {
    return ids[2 * entry + 1];
  }

  /** The slot of a shard, or {@link #NONE}. */
  public int slot(int entry, int shard) {
    return slots[entry * shards + shard];
  }

  public void putSlot(int entry, int shard, int slot) {
    slots[entry * shards + shard] = slot;
    held[entry]++;
  }

  public void clearSlot(int entry, int shard) {
    slots[entry * shards + shard] = NONE;
    held[entry]--;
  }

  /** How many slots the block has. */
  public int held(int entry) {
    return held[entry];
  }

  /** How many of its slots hold a complete shard. */
  public int ready(int entry) {
    return ready[entry];
  }

  public void addReady(int entry, int change) {
    ready[entry] += change;
  }

  /** How many of its slots are referenced. */
  public int busy(int entry) {
    return busy[entry];
  }

  public int addBusy(int entry, int change) {
    return busy[entry] += change;
  }

  /** Whether shards of the block were dumped here, and none of those was evicted alone. */
  public boolean wasDumped(int entry) {
    return dumped[entry];
  }

  public void markDumped(int entry) {
    dumped[entry] = true;
  }

  public void unmarkDumped(int entry) {
    dumped[entry] = false;
  }

  private int home(int entry) {
    return (int) hash(ids[2 * entry], ids[2 * entry + 1]) & bucketMask;
  }

  private void intoBucket(int entry) {
    int at = home(entry);
    while (buckets[at] != 0) {
      at = (at + 1) & bucketMask;
    }
    buckets[at] = entry + 1;
  }
}
