package ucm.platform.eviction;

import com.carrotsearch.hppc.LongIntHashMap;

/** The keys that were added last, up to a bound, oldest forgotten first. Not thread-safe. */
final class GhostQueue {

  private static final int QUEUE = 0;
  private static final int FREE = 1;

  private final long[] keys;
  private final EntryLists places;
  private final LongIntHashMap placeOf = new LongIntHashMap();

  /** Remembers so many, 0 or more. */
  GhostQueue(int capacity) {
    keys = new long[capacity];
    places = new EntryLists(capacity);
    for (int place = 0; place < capacity; place++) {
      places.addNewest(FREE, place);
    }
  }

  /** Remembers a key, as the newest. */
  void add(long key) {
    if (keys.length == 0) {
      return;
    }
    remove(key);
    if (places.size(FREE) == 0) {
      remove(keys[places.oldest(QUEUE)]);
    }
    int place = places.oldest(FREE);
    keys[place] = key;
    places.addNewest(QUEUE, place);
    placeOf.put(key, place);
  }

  /** Forgets a key; whether it was remembered. */
  boolean remove(long key) {
    int index = placeOf.indexOf(key);
    if (!placeOf.indexExists(index)) {
      return false;
    }
    places.addNewest(FREE, placeOf.indexGet(index));
    placeOf.indexRemove(index);
    return true;
  }
}
