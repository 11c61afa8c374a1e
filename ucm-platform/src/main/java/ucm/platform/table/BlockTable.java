package ucm.platform.table;

import java.util.Arrays;

/**
 * Block ids, each with a small number, its <em>entry</em>, which it keeps while it is in the table.
 *
 * <p>Entries are given from 0 up, those of removed ids first, so what a caller knows of a block fits
 * into its own arrays by entry. Open addressing with linear probing over two primitive arrays: the ids by
 * entry, and buckets that hold 32 bits of the hash and the entry, so that a probe rarely reads an id in
 * vain. Between 27 and 46 bytes an id, and no object; off the heap it would be no less.
 *
 * <p>Not thread-safe, except that {@link #find} may run during a change of another thread: it then
 * ends, stays within bounds, and its answer is worthless. So a caller may read under a stamp of a {@link
 * java.util.concurrent.locks.StampedLock} and validate it.
 */
public final class BlockTable {

  /** No entry. */
  public static final int NONE = -1;

  /** How many ids fit into a table. */
  public static final int MAX_SIZE = 1 << 29;

  private static final int LEAST_BUCKETS = 16;

  // Low half of the hash in the upper 32 bits, entry + 1 in the lower; or 0.
  private long[] buckets;
  // Two words an entry; the first word of an entry that is free names the next free one.
  private long[] ids;
  private int size;
  private int end;
  private int free = NONE;

  /** An empty table that has room for so many ids, and grows beyond. */
  public BlockTable(int expected) {
    ids = new long[2 * Math.max(1, expected)];
    int length = LEAST_BUCKETS;
    while (!fits(expected, length)) {
      length *= 2;
    }
    buckets = new long[length];
  }

  /**
   * The hash of a block id: every bit depends on every bit of the id (the finalizer of MurmurHash3 by
   * Appleby over both halves). Ids are hashes already, but a test's or a third party's may not be.
   */
  public static long hash(long high, long low) {
    long h = high * 0x9e3779b97f4a7c15L ^ low;
    h = (h ^ (h >>> 33)) * 0xff51afd7ed558ccdL;
    h = (h ^ (h >>> 33)) * 0xc4ceb9fe1a85ec53L;
    return h ^ (h >>> 33);
  }

  /** How many ids there are. */
  public int size() {
    return size;
  }

  /** All entries given so far are below this. */
  public int end() {
    return end;
  }

  /** The first half of the id of an entry. */
  public long high(int entry) {
    return ids[2 * entry];
  }

  /** The second half of the id of an entry. */
  public long low(int entry) {
    return ids[2 * entry + 1];
  }

  /** The entry of an id, or {@link #NONE}. */
  public int find(long high, long low) {
    return find(hash(high, low), high, low);
  }

  /** The entry of an id whose {@link #hash} the caller has, or {@link #NONE}. */
  public int find(long hash, long high, long low) {
    long[] chain = buckets;
    long[] words = ids;
    int mask = chain.length - 1;
    int at = (int) hash & mask;
    // Bounded, because during a change there may seem to be no empty bucket.
    for (int step = 0; step <= mask; step++) {
      long bucket = chain[at];
      if (bucket == 0) {
        return NONE;
      }
      int word = 2 * ((int) bucket - 1);
      boolean maySo = (int) (bucket >>> Integer.SIZE) == (int) hash && word < words.length;
      if (maySo && words[word + 1] == low && words[word] == high) {
        return word / 2;
      }
      at = (at + 1) & mask;
    }
    return NONE;
  }

  /** The entry of an id, which is added if it is not there: then {@link #size} has grown. */
  public int put(long high, long low) {
    return put(hash(high, low), high, low);
  }

  /**
   * The entry of an id whose {@link #hash} the caller has, which is added if it is not there.
   *
   * @throws IllegalStateException when {@link #MAX_SIZE} ids are there
   * @throws OutOfMemoryError when the table cannot grow; it is as before
   */
  public int put(long hash, long high, long low) {
    int entry = find(hash, high, low);
    if (entry != NONE) {
      return entry;
    }
    makeRoom();
    if (free == NONE) {
      entry = end++;
    } else {
      entry = free;
      free = (int) ids[2 * entry];
    }
    ids[2 * entry] = high;
    ids[2 * entry + 1] = low;
    insert(buckets, bucket(hash, entry));
    size++;
    return entry;
  }

  /** Removes the id of an entry. */
  public void remove(int entry) {
    long[] chain = buckets;
    int mask = chain.length - 1;
    long wanted = bucket(hash(ids[2 * entry], ids[2 * entry + 1]), entry);
    int hole = home(wanted, mask);
    while (chain[hole] != wanted) {
      hole = (hole + 1) & mask;
    }
    // Moves later ids of the chain into the hole, so that no mark has to stay.
    for (int at = (hole + 1) & mask; chain[at] != 0; at = (at + 1) & mask) {
      if (((at - home(chain[at], mask)) & mask) >= ((at - hole) & mask)) {
        chain[hole] = chain[at];
        hole = at;
      }
    }
    chain[hole] = 0;
    ids[2 * entry] = free;
    free = entry;
    size--;
  }

  private static boolean fits(int wanted, int length) {
    return wanted <= length - length / 4;
  }

  private void makeRoom() {
    if (size == MAX_SIZE) {
      throw new IllegalStateException("the table is full: it has " + size + " blocks");
    }
    if (free == NONE && 2 * end == ids.length) {
      ids = Arrays.copyOf(ids, 2 * Math.min(MAX_SIZE, end + end / 2 + 1));
    }
    if (!fits(size + 1, buckets.length)) {
      long[] larger = new long[2 * buckets.length];
      for (long bucket : buckets) {
        if (bucket != 0) {
          insert(larger, bucket);
        }
      }
      buckets = larger;
    }
  }

  private static void insert(long[] chain, long bucket) {
    int mask = chain.length - 1;
    int at = home(bucket, mask);
    while (chain[at] != 0) {
      at = (at + 1) & mask;
    }
    chain[at] = bucket;
  }

  private static long bucket(long hash, int entry) {
    return hash << Integer.SIZE | (entry + 1);
  }

  private static int home(long bucket, int mask) {
    return (int) (bucket >>> Integer.SIZE) & mask;
  }
}
