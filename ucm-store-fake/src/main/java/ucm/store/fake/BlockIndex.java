package ucm.store.fake;

import java.util.BitSet;
import java.util.concurrent.locks.StampedLock;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.api.Transfer;

/**
 * Which blocks are there, and of which some shards are. Thread-safe.
 *
 * <p>Look-ups take no lock: they read optimistically, some hundred ids at a time, and again under the
 * read lock when a change came in between. Changes, that is dumps and loads, take turns; each holds
 * the lock for some hundred shards at the most.
 *
 * <p>A block whose shards are all there is in one table, one that lacks some in another. Both are
 * bounded and lose what was used least recently. Dumps and loads use a block; look-ups ask about it
 * and do not.
 */
final class BlockIndex {

  private static final int STRIDE = 256;
  private static final int MOST_PARTIAL_BLOCKS = 1 << 16;
  private static final int MOST_PARTIAL_MARKS = 1 << 26;

  private final StampedLock lock = new StampedLock();
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
  public BlockIndex(int capacity, int shardCount, StoreMetrics.Counter evictions) {
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
    int size = ids.size();
    long[] found = new long[(size + Long.SIZE - 1) / Long.SIZE];
    for (int from = 0; from < size; from += STRIDE) {
      int end = Math.min(from + STRIDE, size);
      long stamp = lock.tryOptimisticRead();
      if (stamp != 0) {
        find(ids, from, end, found);
        if (lock.validate(stamp)) {
          continue;
        }
      }
      stamp = lock.readLock();
      try {
        find(ids, from, end, found);
      } finally {
        lock.unlockRead(stamp);
      }
    }
    return BitSet.valueOf(found);
  }

  // From is a multiple of 64.
  private void find(BlockIds ids, int from, int end, long[] found) {
    for (int first = from; first < end; first += Long.SIZE) {
      int last = Math.min(first + Long.SIZE, end);
      long bits = 0;
      for (int i = first; i < last; i++) {
        if (whole.find(ids.high(i), ids.low(i)) != IdTable.NONE) {
          bits |= 1L << i;
        }
      }
      found[first / Long.SIZE] = bits;
    }
  }

  /** How many blocks from the first one on are whole. */
  int run(BlockIds ids) {
    int size = ids.size();
    for (int from = 0; from < size; from += STRIDE) {
      int end = Math.min(from + STRIDE, size);
      long stamp = lock.tryOptimisticRead();
      int absent = stamp == 0 ? from : firstAbsent(ids, from, end);
      if (stamp == 0 || !lock.validate(stamp)) {
        stamp = lock.readLock();
        try {
          absent = firstAbsent(ids, from, end);
        } finally {
          lock.unlockRead(stamp);
        }
      }
      if (absent < end) {
        return absent;
      }
    }
    return size;
  }

  private int firstAbsent(BlockIds ids, int from, int end) {
    int i = from;
    while (i < end && whole.find(ids.high(i), ids.low(i)) != IdTable.NONE) {
      i++;
    }
    return i;
  }

  /** Uses the blocks of a transfer that are whole; gives the shards whose blocks are not. */
  BitSet use(Transfer transfer) {
    int shards = transfer.shardCount();
    BlockIds ids = transfer.ids();
    BitSet missing = new BitSet();
    for (int from = 0; from < shards; from += STRIDE) {
      int end = Math.min(from + STRIDE, shards);
      long stamp = lock.writeLock();
      try {
        for (int shard = from; shard < end; shard++) {
          int slot = whole.find(ids.high(shard), ids.low(shard));
          if (slot == IdTable.NONE) {
            missing.set(shard);
          } else {
            whole.use(slot);
          }
        }
      } finally {
        lock.unlockWrite(stamp);
      }
    }
    return missing;
  }

  /** Notes that the shards of a transfer are there. */
  public void add(Transfer transfer) {
    int shards = transfer.shardCount();
    BlockIds ids = transfer.ids();
    for (int from = 0; from < shards; from += STRIDE) {
      int end = Math.min(from + STRIDE, shards);
      long stamp = lock.writeLock();
      try {
        for (int shard = from; shard < end; shard++) {
          add(ids.high(shard), ids.low(shard), transfer.shardIndex(shard));
        }
      } finally {
        lock.unlockWrite(stamp);
      }
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
  public void remove(BlockIds ids) {
    for (int from = 0; from < ids.size(); from += STRIDE) {
      int end = Math.min(from + STRIDE, ids.size());
      long stamp = lock.writeLock();
      try {
        for (int i = from; i < end; i++) {
          remove(whole, ids.high(i), ids.low(i));
          remove(partial, ids.high(i), ids.low(i));
        }
      } finally {
        lock.unlockWrite(stamp);
      }
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
  public int size() {
    long stamp = lock.readLock();
    try {
      return whole.size();
    } finally {
      lock.unlockRead(stamp);
    }
  }
}
