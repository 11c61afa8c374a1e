package ucm.store.fake;

import java.util.BitSet;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.Transfer;

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

  /** How many blocks are whole. */
  int size() {
    lock.readLock().lock();
    try {
      return whole.size();
    } finally {
      lock.readLock().unlock();
    }
  }
}
