package ucm.store.cache.eviction;

/**
 * The ids of the blocks that were evicted last, oldest forgotten first: what policies call a ghost
 * queue. Open addressing over primitive arrays, and a ring for the order. Guarded by the stripe's lock.
 */
final class EvictedIds {

  private final int capacity;
  private final int bucketMask;
  // Place in the ring + 1, or 0.
  private final int[] buckets;
  private final long[] ids;
  private final boolean[] known;
  private int next;

  /** Remembers so many, 1 or more. */
  EvictedIds(int capacity) {
    this.capacity = capacity;
    this.bucketMask = Integer.highestOneBit(Math.max(2, 2 * capacity - 1)) * 2 - 1;
    this.buckets = new int[bucketMask + 1];
    this.ids = new long[2 * capacity];
    this.known = new boolean[capacity];
  }

  /** Remembers a block that is not remembered. */
  void add(long high, long low) {
    if (known[next]) {
      removeBucket(bucketOf(ids[2 * next], ids[2 * next + 1]));
    }
    ids[2 * next] = high;
    ids[2 * next + 1] = low;
    known[next] = true;
    int at = home(next);
    while (buckets[at] != 0) {
      at = (at + 1) & bucketMask;
    }
    buckets[at] = next + 1;
    next = next + 1 == capacity ? 0 : next + 1;
  }

  /** Forgets a block; whether it was remembered. */
  boolean remove(long high, long low) {
    int at = bucketOf(high, low);
    if (buckets[at] == 0) {
      return false;
    }
    known[buckets[at] - 1] = false;
    removeBucket(at);
    return true;
  }

  /** Where a block is, or an empty bucket. */
  private int bucketOf(long high, long low) {
    int at = (int) BlockTable.hash(high, low) & bucketMask;
    while (buckets[at] != 0) {
      int place = buckets[at] - 1;
      if (ids[2 * place] == high && ids[2 * place + 1] == low) {
        break;
      }
      at = (at + 1) & bucketMask;
    }
    return at;
  }

  private void removeBucket(int bucket) {
    // Moves later ids of the probe run forward over the hole, so that no tombstone is needed.
    int hole = bucket;
    for (int at = (hole + 1) & bucketMask; buckets[at] != 0; at = (at + 1) & bucketMask) {
      int distance = (at - home(buckets[at] - 1)) & bucketMask;
      if (distance >= ((at - hole) & bucketMask)) {
        buckets[hole] = buckets[at];
        hole = at;
      }
    }
    buckets[hole] = 0;
  }

  private int home(int place) {
    return (int) BlockTable.hash(ids[2 * place], ids[2 * place + 1]) & bucketMask;
  }
}
