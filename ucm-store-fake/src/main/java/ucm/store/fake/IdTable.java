package ucm.store.fake;

import java.util.Arrays;

/**
 * A bounded set of block ids that knows which was used least recently. Not thread-safe, but {@link
 * #find} may run beside a change: it then ends, and its answer is worthless.
 *
 * <p>Open addressing with linear probing, at most half full. The two words of an id lie side by side
 * in one array and are all that a look-up reads, so it mostly costs one cache line. Removal moves
 * later ids of the chain up instead of leaving marks, so chains do not grow with age. The order of
 * use is a list linked through slot numbers.
 *
 * <p>Two zero words mark an empty slot; the id that is all zeros has a slot of its own past the end.
 */
final class IdTable {

  /** No slot. */
  static final int NONE = -1;

  private final int capacity;
  private final int mask;
  private final int zeroSlot;
  private final long[] keys;
  private final int[] older;
  private final int[] newer;
  private final int marksPerSlot;
  private final long[] marks;
  private boolean zeroUsed;
  private int newest = NONE;
  private int oldest = NONE;
  private int size;

  /**
   * An empty table; takes all of its memory now.
   *
   * @param capacity how many ids it holds, at most 2^28
   * @param bits how many marks each id carries
   */
  IdTable(int capacity, int bits) {
    int slots = Integer.highestOneBit(Math.max(1, 2 * capacity - 1)) << 1;
    this.capacity = capacity;
    this.mask = slots - 1;
    this.zeroSlot = slots;
    this.keys = new long[2 * (slots + 1)];
    this.older = new int[slots + 1];
    this.newer = new int[slots + 1];
    this.marksPerSlot = (bits + Long.SIZE - 1) / Long.SIZE;
    this.marks = new long[(slots + 1) * marksPerSlot];
  }

  int size() {
    return size;
  }

  boolean isFull() {
    return size == capacity;
  }

  /** The slot of an id, valid until the next removal; or {@link #NONE}. */
  int find(long high, long low) {
    if ((high | low) == 0) {
      return zeroUsed ? zeroSlot : NONE;
    }
    long[] words = keys;
    int slot = home(high, low);
    // Bounded, because beside a change there may seem to be no empty slot.
    for (int steps = 0; steps <= mask; steps++) {
      long slotHigh = words[2 * slot];
      long slotLow = words[2 * slot + 1];
      if (slotHigh == high && slotLow == low) {
        return slot;
      }
      if ((slotHigh | slotLow) == 0) {
        return NONE;
      }
      slot = (slot + 1) & mask;
    }
    return NONE;
  }

  /** Adds an id that is not there, to a table that is not full, as the one used last. */
  int add(long high, long low) {
    int slot;
    if ((high | low) == 0) {
      slot = zeroSlot;
      zeroUsed = true;
    } else {
      slot = home(high, low);
      while (!isEmpty(slot)) {
        slot = (slot + 1) & mask;
      }
      keys[2 * slot] = high;
      keys[2 * slot + 1] = low;
    }
    Arrays.fill(marks, slot * marksPerSlot, (slot + 1) * marksPerSlot, 0);
    linkNewest(slot);
    size++;
    return slot;
  }

  /** Makes an id the one used last. */
  void use(int slot) {
    if (slot != newest) {
      unlink(slot);
      linkNewest(slot);
    }
  }

  /** Removes the id that was not used for the longest time; the table is not empty. */
  void removeOldest() {
    remove(oldest);
  }

  /** Removes an id. */
  void remove(int slot) {
    unlink(slot);
    size--;
    if (slot == zeroSlot) {
      zeroUsed = false;
      return;
    }
    int hole = slot;
    for (int at = (hole + 1) & mask; !isEmpty(at); at = (at + 1) & mask) {
      int home = home(keys[2 * at], keys[2 * at + 1]);
      // It may move up unless its home lies between the hole and it.
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        move(at, hole);
        hole = at;
      }
    }
    keys[2 * hole] = 0;
    keys[2 * hole + 1] = 0;
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

  private void move(int from, int to) {
    keys[2 * to] = keys[2 * from];
    keys[2 * to + 1] = keys[2 * from + 1];
    System.arraycopy(marks, from * marksPerSlot, marks, to * marksPerSlot, marksPerSlot);
    int before = older[from];
    int after = newer[from];
    older[to] = before;
    newer[to] = after;
    if (before == NONE) {
      oldest = to;
    } else {
      newer[before] = to;
    }
    if (after == NONE) {
      newest = to;
    } else {
      older[after] = to;
    }
  }

  private void linkNewest(int slot) {
    older[slot] = newest;
    newer[slot] = NONE;
    if (newest == NONE) {
      oldest = slot;
    } else {
      newer[newest] = slot;
    }
    newest = slot;
  }

  private void unlink(int slot) {
    int before = older[slot];
    int after = newer[slot];
    if (before == NONE) {
      oldest = after;
    } else {
      newer[before] = after;
    }
    if (after == NONE) {
      newest = before;
    } else {
      older[after] = before;
    }
  }

  private boolean isEmpty(int slot) {
    return (keys[2 * slot] | keys[2 * slot + 1]) == 0;
  }

  // Ids are hashes, but need not be: every bit of both words reaches the slot number.
  private int home(long high, long low) {
    long mixed = high * 0x9E3779B97F4A7C15L + low * 0xC2B2AE3D27D4EB4FL;
    mixed = (mixed ^ (mixed >>> 32)) * 0xD6E8FEB86659FD93L;
    return (int) (mixed >>> 32) & mask;
  }
}
