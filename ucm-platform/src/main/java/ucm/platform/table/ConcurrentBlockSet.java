package ucm.platform.table;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.StampedLock;

/**
 * A bounded set of block ids for many threads: a full one forgets an id for each that comes.
 *
 * <p>Divided by hash into parts, each a {@link BlockTable} under a lock of its own. To ask takes no lock
 * unless that part changes at the moment, and allocates nothing. Memory grows with the ids.
 */
public final class ConcurrentBlockSet {

  private static final int STRIPES = 64;
  private static final int FIRST_IDS = 64;
  // Below this a single stripe, so that a small bound is exact.
  private static final int SMALL = 1 << 12;

  private final Stripe[] stripes;
  private final AtomicLong forgotten = new AtomicLong();

  /**
   * An empty set.
   *
   * @param maxSize how many ids it holds, to within a 64th where that is 4096 or more; with 0 it never has any
   */
  public ConcurrentBlockSet(int maxSize) {
    stripes = new Stripe[maxSize < SMALL ? 1 : STRIPES];
    for (int i = 0; i < stripes.length; i++) {
      stripes[i] = new Stripe(Math.ceilDiv(maxSize, stripes.length));
    }
  }

  /** Whether an id is here. */
  public boolean contains(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return stripe(hash).contains(hash, high, low);
  }

  /** Adds an id, unless it is here; returns whether it was not. */
  public boolean add(long high, long low) {
    long hash = BlockTable.hash(high, low);
    Stripe stripe = stripe(hash);
    return !stripe.contains(hash, high, low) && stripe.add(hash, high, low);
  }

  /** How many ids were forgotten for others. */
  public long forgotten() {
    return forgotten.get();
  }

  /** Removes an id; whether it was here. */
  public boolean remove(long high, long low) {
    long hash = BlockTable.hash(high, low);
    return stripe(hash).remove(hash, high, low);
  }

  /** A number that is another one after any {@link #remove} of this id, here or not, and of some others. */
  public long removals(long high, long low) {
    return stripe(BlockTable.hash(high, low)).removals.get();
  }

  /** How many ids are here. */
  public long size() {
    long size = 0;
    for (Stripe stripe : stripes) {
      size += stripe.size();
    }
    return size;
  }

  private Stripe stripe(long hash) {
    return stripes[(int) (hash >>> 58) & (stripes.length - 1)];
  }

  private final class Stripe {

    private final StampedLock lock = new StampedLock();
    private final int maxSize;
    // Guarded by lock.
    private final BlockTable table;
    private int oldest;
    private final AtomicLong removals = new AtomicLong();

    Stripe(int maxSize) {
      this.maxSize = maxSize;
      this.table = new BlockTable(Math.min(maxSize, FIRST_IDS));
    }

    boolean contains(long hash, long high, long low) {
      long stamp = lock.tryOptimisticRead();
      boolean here = table.find(hash, high, low) != BlockTable.NONE;
      if (lock.validate(stamp)) {
        return here;
      }
      stamp = lock.readLock();
      try {
        return table.find(hash, high, low) != BlockTable.NONE;
      } finally {
        lock.unlockRead(stamp);
      }
    }

    boolean add(long hash, long high, long low) {
      long stamp = lock.writeLock();
      try {
        if (maxSize == 0 || table.find(hash, high, low) != BlockTable.NONE) {
          return false;
        }
        if (table.size() == maxSize) {
          // A full table has all entries; they go in turn.
          table.remove(oldest);
          oldest = (oldest + 1) % maxSize;
          forgotten.incrementAndGet();
        }
        table.put(hash, high, low);
        return true;
      } finally {
        lock.unlockWrite(stamp);
      }
    }

    boolean remove(long hash, long high, long low) {
      long stamp = lock.writeLock();
      try {
        // Whether it is here or not: a thread may be about to add it.
        removals.incrementAndGet();
        int entry = table.find(hash, high, low);
        if (entry == BlockTable.NONE) {
          return false;
        }
        table.remove(entry);
        return true;
      } finally {
        lock.unlockWrite(stamp);
      }
    }

    int size() {
      long stamp = lock.readLock();
      try {
        return table.size();
      } finally {
        lock.unlockRead(stamp);
      }
    }
  }
}
