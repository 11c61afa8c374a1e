package ucm.store.cache.eviction;

import java.util.Arrays;

/**
 * S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP
 * 2023): a small queue of a tenth of the blocks that lets through what is used again before it reaches the
 * end, a main queue whose blocks get another round when they were used, and a memory of the ids evicted
 * from the small one, which enter the main queue when they come back.
 *
 * <p>A block that is in use when its turn comes goes one round on, as one that was used. So a victim takes
 * more than constant time only while most blocks are in use.
 */
final class S3FifoOrder implements EvictionOrder {

  private static final int SMALL_SHARE = 10;
  private static final byte MAX_USES = 3;

  private final EntryQueue small;
  private final EntryQueue main;
  private final EvictedIds evicted;
  private byte[] uses;
  private boolean[] inUse;
  private int idleInSmall;
  private int idleInMain;

  /**
   * An empty order of entries below {@code capacity}.
   *
   * @param remembered how many evicted blocks are remembered
   */
  S3FifoOrder(int capacity, int remembered) {
    small = new EntryQueue(capacity);
    main = new EntryQueue(capacity);
    evicted = new EvictedIds(remembered);
    uses = new byte[capacity];
    inUse = new boolean[capacity];
  }

  @Override
  public void grow(int capacity) {
    small.grow(capacity);
    main.grow(capacity);
    uses = Arrays.copyOf(uses, capacity);
    inUse = Arrays.copyOf(inUse, capacity);
  }

  @Override
  public void enter(int entry, long high, long low) {
    uses[entry] = 0;
    inUse[entry] = true;
    (evicted.remove(high, low) ? main : small).addNewest(entry);
  }

  @Override
  public void use(int entry) {
    if (uses[entry] < MAX_USES) {
      uses[entry]++;
    }
  }

  @Override
  public void busy(int entry) {
    if (!inUse[entry]) {
      inUse[entry] = true;
      addIdle(entry, -1);
    }
  }

  @Override
  public void idle(int entry) {
    inUse[entry] = false;
    addIdle(entry, 1);
  }

  @Override
  public int victim() {
    while (idleInSmall + idleInMain > 0) {
      // The two queues make up all blocks; one without an idle block would be gone round for ever.
      boolean overShare = SMALL_SHARE * small.size() >= small.size() + main.size();
      boolean fromSmall = idleInMain == 0 || (overShare && idleInSmall > 0);
      int oldest = (fromSmall ? small : main).oldest();
      if (!inUse[oldest] && uses[oldest] <= (fromSmall ? 1 : 0)) {
        return oldest;
      }
      again(oldest, fromSmall);
    }
    return BlockTable.NONE;
  }

  @Override
  public void evicted(int entry, long high, long low) {
    if (small.has(entry)) {
      evicted.add(high, low);
    }
  }

  @Override
  public void leave(int entry) {
    busy(entry);
    small.remove(entry);
    main.remove(entry);
  }

  /** Puts an entry at the end of the main queue. */
  private void again(int entry, boolean fromSmall) {
    int idle = inUse[entry] ? 0 : 1;
    addIdle(entry, -idle);
    (fromSmall ? small : main).remove(entry);
    main.addNewest(entry);
    addIdle(entry, idle);
    uses[entry] = fromSmall ? 0 : (byte) Math.max(0, uses[entry] - 1);
  }

  private void addIdle(int entry, int change) {
    if (small.has(entry)) {
      idleInSmall += change;
    } else {
      idleInMain += change;
    }
  }
}
