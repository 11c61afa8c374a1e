package ucm.store.cache.eviction;

import java.util.Arrays;

/**
 * Entries of a stripe's blocks in a line: a doubly linked list in two arrays, so that any entry is put
 * in and taken out in constant time and nothing is allocated. Guarded by the stripe's lock.
 */
final class EntryQueue {

  private static final int ABSENT = -2;
  private static final int END = BlockTable.NONE;

  private int[] newer;
  private int[] older;
  private int newest = END;
  private int oldest = END;
  private int size;

  /** An empty queue of entries below {@code capacity}. */
  EntryQueue(int capacity) {
    newer = new int[capacity];
    older = new int[capacity];
    Arrays.fill(newer, ABSENT);
  }

  /** Makes place for entries below {@code capacity}. */
  void grow(int capacity) {
    int before = newer.length;
    newer = Arrays.copyOf(newer, capacity);
    older = Arrays.copyOf(older, capacity);
    Arrays.fill(newer, before, capacity, ABSENT);
  }

  /** The entry that was put in first, or {@link BlockTable#NONE}. */
  int oldest() {
    return oldest;
  }

  /** Whether an entry is here. */
  boolean has(int entry) {
    return newer[entry] != ABSENT;
  }

  /** How many entries are here. */
  int size() {
    return size;
  }

  /** Adds an entry, which is not here, as the newest. */
  void addNewest(int entry) {
    newer[entry] = END;
    older[entry] = newest;
    if (newest == END) {
      oldest = entry;
    } else {
      newer[newest] = entry;
    }
    newest = entry;
    size++;
  }

  /** Removes an entry if it is there. */
  void remove(int entry) {
    int after = newer[entry];
    if (after == ABSENT) {
      return;
    }
    int before = older[entry];
    if (after == END) {
      newest = before;
    } else {
      older[after] = before;
    }
    if (before == END) {
      oldest = after;
    } else {
      newer[before] = after;
    }
    newer[entry] = ABSENT;
    size--;
  }
}
