package ucm.lite.record;

import java.util.Arrays;
import ucm.lite.trace.TraceException;

/**
 * Numbers 128-bit block ids 0, 1, 2, ... in the order first seen, so that everything after it
 * works on small integers and plain arrays.
 *
 * <p>Open addressing with linear probing over primitive arrays: the ids lie in the order of their
 * numbers, a table of numbers points into them. 24 to 48 bytes a block; no object a block. Not for
 * use by several threads.
 */
public final class BlockNumbers {
  private static final int INITIAL_BLOCKS = 1 << 10;
  public static final int MAX_BLOCKS = 1 << 29;

  private long[] ids = new long[2 * INITIAL_BLOCKS];

  /** Number of a block + 1, or 0; a power of two long, at most half full. */
  private int[] table = new int[2 * INITIAL_BLOCKS];

  private int size;

  /** Starts with no id. */
  public BlockNumbers() {}

  /** A table by block, filled with -1 for none. */
  public static int[] table(int blocks) {
    int[] table = new int[blocks];
    Arrays.fill(table, -1);
    return table;
  }

  /** Returns the number of distinct ids so far. */
  public int size() {
    return size;
  }

  /** Returns the number of an id, giving it the next one when it is new. */
  public int number(long high, long low) {
    int mask = table.length - 1;
    int slot = (int) mix(high, low) & mask;
    while (true) {
      int number = table[slot] - 1;
      if (number < 0) {
        return add(high, low, slot);
      }
      if (ids[2 * number + 1] == low && ids[2 * number] == high) {
        return number;
      }
      slot = (slot + 1) & mask;
    }
  }

  private int add(long high, long low, int slot) {
    if (size == MAX_BLOCKS) {
      throw new TraceException("more than " + MAX_BLOCKS + " distinct blocks, expected fewer");
    }
    int number = size++;
    if (2 * size > ids.length) {
      ids = Arrays.copyOf(ids, (int) Math.min(2L * ids.length, 2L * MAX_BLOCKS));
    }
    ids[2 * number] = high;
    ids[2 * number + 1] = low;
    table[slot] = number + 1;
    if (2 * size > table.length) {
      rehash();
    }
    return number;
  }

  private void rehash() {
    int[] larger = new int[2 * table.length];
    int mask = larger.length - 1;
    for (int number = 0; number < size; number++) {
      int slot = (int) mix(ids[2 * number], ids[2 * number + 1]) & mask;
      while (larger[slot] != 0) {
        slot = (slot + 1) & mask;
      }
      larger[slot] = number + 1;
    }
    table = larger;
  }

  /** Returns the first half of the id with a number. */
  public long high(int number) {
    return ids[2 * number];
  }

  /** Returns the second half of the id with a number. */
  public long low(int number) {
    return ids[2 * number + 1];
  }

  /** The finalizer of MurmurHash3 (Appleby) over both halves: every bit depends on every bit. */
  public static long mix(long high, long low) {
    long h = high * 0x9e3779b97f4a7c15L ^ low;
    h = (h ^ (h >>> 33)) * 0xff51afd7ed558ccdL;
    h = (h ^ (h >>> 33)) * 0xc4ceb9fe1a85ec53L;
    return h ^ (h >>> 33);
  }
}
