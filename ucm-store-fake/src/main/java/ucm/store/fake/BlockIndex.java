package ucm.store.fake;

import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.Transfer;
import ucm.platform.eviction.LruOrder;
import ucm.platform.table.BlockTable;

/**
 * Which blocks are there, and of which some shards are. Thread-safe: look-ups go side by side, changes, that
 * is dumps and loads, take turns.
 *
 * <p>A block whose shards are all there is in one table, one that lacks some in another. Both are
 * bounded and lose what was used least recently. Dumps and loads use a block; look-ups ask about it
 * and do not.
 */
final class BlockIndex {

  private static final int MOST_PARTIAL_BLOCKS = 1 << 16;
  private static final int MOST_PARTIAL_MARKS = 1 << 26;

  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private final IdTable whole;
  private final IdTable partial;
  private final int shardCount;
  private final StoreMetrics.Counter evictions;

  /**
   * An empty index.
   *
   * @param capacity how many whole blocks it knows at the most
   * @param shardCount shards in a block
   * @param evictions counts blocks, whole or not, that had to go because a table was full
   */
  BlockIndex(int capacity, int shardCount, StoreMetrics.Counter evictions) {
    this.evictions = evictions;
    this.shardCount = shardCount;
    this.whole = new IdTable(capacity, 0);
    this.partial = new IdTable(partialCapacity(capacity, shardCount), shardCount);
  }

  private static int partialCapacity(int capacity, int shardCount) {
    int most = Math.clamp(MOST_PARTIAL_MARKS / shardCount, 1, MOST_PARTIAL_BLOCKS);
    return shardCount == 1 ? 1 : Math.min(capacity, most);
  }

  /** The blocks that are whole. */
  BitSet lookup(BlockIds ids) {
    BitSet found = new BitSet(ids.size());
    lock.readLock().lock();
    try {
      for (int i = 0; i < ids.size(); i++) {
        found.set(i, isWhole(ids, i));
      }
    } finally {
      lock.readLock().unlock();
    }
    return found;
  }

  /** How many blocks from the first one on are whole. */
  int run(BlockIds ids) {
    lock.readLock().lock();
    try {
      int i = 0;
      while (i < ids.size() && isWhole(ids, i)) {
        i++;
      }
      return i;
    } finally {
      lock.readLock().unlock();
    }
  }

  private boolean isWhole(BlockIds ids, int i) {
    return whole.find(ids.high(i), ids.low(i)) != IdTable.NONE;
  }

  /** Uses the blocks of a transfer that are whole; gives the shards whose blocks are not. */
  BitSet use(Transfer transfer) {
    BlockIds ids = transfer.ids();
    BitSet missing = new BitSet();
    lock.writeLock().lock();
    try {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        int slot = whole.find(ids.high(shard), ids.low(shard));
        if (slot == IdTable.NONE) {
          missing.set(shard);
        } else {
          whole.use(slot);
        }
      }
    } finally {
      lock.writeLock().unlock();
    }
    return missing;
  }

  /** Notes that the shards of a transfer are there. */
  void add(Transfer transfer) {
    BlockIds ids = transfer.ids();
    lock.writeLock().lock();
    try {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        add(ids.high(shard), ids.low(shard), transfer.shardIndex(shard));
      }
    } finally {
      lock.writeLock().unlock();
    }
  }

  private void add(long high, long low, int shardIndex) {
    int slot = whole.find(high, low);
    if (slot != IdTable.NONE) {
      whole.use(slot);
      return;
    }
    if (shardCount > 1) {
      int part = partial.find(high, low);
      if (part == IdTable.NONE) {
        makeRoom(partial);
        part = partial.add(high, low);
      } else {
        partial.use(part);
      }
      if (partial.mark(part, shardIndex) < shardCount) {
        return;
      }
      partial.remove(part);
    }
    makeRoom(whole);
    whole.add(high, low);
  }

  /** Forgets blocks, whole or not. */
  void remove(BlockIds ids) {
    lock.writeLock().lock();
    try {
      for (int i = 0; i < ids.size(); i++) {
        remove(whole, ids.high(i), ids.low(i));
        remove(partial, ids.high(i), ids.low(i));
      }
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Forgets all blocks. */
  void clear() {
    lock.writeLock().lock();
    try {
      whole.clear();
      partial.clear();
    } finally {
      lock.writeLock().unlock();
    }
  }

  private static void remove(IdTable table, long high, long low) {
    int slot = table.find(high, low);
    if (slot != IdTable.NONE) {
      table.remove(slot);
    }
  }

  private void makeRoom(IdTable table) {
    if (table.isFull()) {
      table.removeOldest();
      evictions.increment();
    }
  }

  int size() {
    lock.readLock().lock();
    try {
      return whole.size();
    } finally {
      lock.readLock().unlock();
    }
  }

  /**
   * A bounded set of block ids that knows which was used least recently, and has some marks for each. Calls
   * of {@link #find} may go side by side; the others are not thread-safe.
   */
  static final class IdTable {

    static final int NONE = BlockTable.NONE;

    private final int capacity;
    private final BlockTable ids;
    private final LruOrder order;
    private final int marksPerSlot;
    private final long[] marks;

    /**
     * An empty table; takes all of its memory now.
     *
     * @param capacity how many ids it holds, at most 2^28
     * @param bits how many marks each id carries
     */
    IdTable(int capacity, int bits) {
      this.capacity = capacity;
      this.ids = new BlockTable(capacity);
      this.order = new LruOrder(capacity);
      this.marksPerSlot = (bits + Long.SIZE - 1) / Long.SIZE;
      this.marks = new long[capacity * marksPerSlot];
    }

    int size() {
      return ids.size();
    }

    boolean isFull() {
      return ids.size() == capacity;
    }

    /** The slot of an id, valid until it is removed; or {@link #NONE}. */
    int find(long high, long low) {
      return ids.find(high, low);
    }

    /** Adds an id that is not there, to a table that is not full, as the one used last. */
    int add(long high, long low) {
      int slot = ids.put(high, low);
      Arrays.fill(marks, slot * marksPerSlot, (slot + 1) * marksPerSlot, 0);
      order.add(slot, high);
      return slot;
    }

    void use(int slot) {
      order.touch(slot);
    }

    /** Removes the id that was not used for the longest time; the table is not empty. */
    void removeOldest() {
      ids.remove(order.evict(_ -> true));
    }

    void clear() {
      while (size() > 0) {
        removeOldest();
      }
    }

    void remove(int slot) {
      order.remove(slot);
      ids.remove(slot);
    }

    /**
     * Sets a mark of an id.
     *
     * @return how many of its marks are set now
     */
    int mark(int slot, int bit) {
      int from = slot * marksPerSlot;
      marks[from + bit / Long.SIZE] |= 1L << bit;
      int set = 0;
      for (int i = from; i < from + marksPerSlot; i++) {
        set += Long.bitCount(marks[i]);
      }
      return set;
    }
  }
}
