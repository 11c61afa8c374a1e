package ucm.platform.eviction;

import com.carrotsearch.hppc.LongIntHashMap;
import java.util.Arrays;
import java.util.function.IntPredicate;

/**
 * S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: FIFO Queues are All You Need for Cache Eviction, SOSP 2023): a
 * small queue of a tenth of the entries that new ones pass through, a main queue, and a memory of the
 * keys that left the small queue, as many as the main queue has room for. What was used more than once
 * while in the small queue, or comes back soon after it left, gets into the main queue; there, what was
 * used goes round again.
 *
 * <p>21 bytes an entry, and 36 to 52 for each remembered key.
 */
public final class S3FifoOrder implements EvictionOrder {

  private static final int SMALL = 0;
  private static final int MAIN = 1;
  private static final int SMALL_SHARE = 10;
  private static final byte MAX_USES = 3;

  private final EntryLists queues;
  private final int smallCapacity;
  private final GhostQueue ghosts;
  private long[] keys;
  private byte[] uses;

  /**
   * An empty order, with room for entries below {@code capacity}.
   *
   * @param capacity how many entries the cache has room for: no bound here, but the lengths of the
   *     queues follow from it
   */
  public S3FifoOrder(int capacity) {
    queues = new EntryLists(capacity);
    keys = new long[capacity];
    uses = new byte[capacity];
    smallCapacity = Math.max(1, capacity / SMALL_SHARE);
    ghosts = new GhostQueue(Math.max(0, capacity - smallCapacity));
  }

  @Override
  public void add(int entry, long key) {
    if (entry >= keys.length) {
      int length = Math.max(entry + 1, keys.length + keys.length / 2);
      keys = Arrays.copyOf(keys, length);
      uses = Arrays.copyOf(uses, length);
    }
    keys[entry] = key;
    uses[entry] = 0;
    queues.addNewest(ghosts.remove(key) ? MAIN : SMALL, entry);
  }

  @Override
  public void touch(int entry) {
    if (uses[entry] < MAX_USES) {
      uses[entry]++;
    }
  }

  @Override
  public int evict(IntPredicate mayGo) {
    // Entries of the main queue that, one after the other, may not go: after a round there is none.
    int refused = 0;
    while (true) {
      int inSmall = queues.size(SMALL);
      int inMain = queues.size(MAIN);
      boolean fromSmall = inSmall >= smallCapacity || (inSmall > 0 && refused >= inMain);
      if (!fromSmall && refused >= inMain) {
        return NONE;
      }
      int entry = queues.oldest(fromSmall ? SMALL : MAIN);
      boolean idle = mayGo.test(entry);
      if (idle && uses[entry] <= (fromSmall ? 1 : 0)) {
        queues.remove(entry);
        if (fromSmall) {
          ghosts.add(keys[entry]);
        }
        return entry;
      }
      queues.addNewest(MAIN, entry);
      uses[entry] = (byte) (fromSmall ? 0 : Math.max(0, uses[entry] - 1));
      refused = idle ? 0 : fromSmall ? refused : refused + 1;
    }
  }

  @Override
  public void remove(int entry) {
    queues.remove(entry);
  }

  /** The keys that were added last, up to a bound, oldest forgotten first. Not thread-safe. */
  static final class GhostQueue {

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
}
