package ucm.store.cache;

import java.util.Arrays;

/**
 * The eviction policy: the blocks that may be evicted, least recently used first.
 *
 * <p>Whole blocks are ordered rather than shards, because a block that lacks one shard is no hit. A
 * block that is in use is not in the list at all; it comes back as the newest when its last reference
 * is gone. So the oldest is always evictable and a victim is found in constant time. A doubly linked
 * list in two arrays; guarded by the stripe's lock.
 */
final class LruOrder {

  private static final int ABSENT = -2;
  private static final int END = BlockTable.NONE;

  private int[] newer;
  private int[] older;
  private int newest = END;
  private int oldest = END;

  /** An empty order of entries below {@code capacity}. */
  LruOrder(int capacity) {
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

  /** The entry to evict next, or {@link BlockTable#NONE}. */
  int oldest() {
    return oldest;
  }

  /** Adds an entry, which is not in the order, as the newest. */
  void addNewest(int entry) {
    newer[entry] = END;
    older[entry] = newest;
    if (newest == END) {
      oldest = entry;
    } else {
      newer[newest] = entry;
    }
    newest = entry;
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
  }
}
