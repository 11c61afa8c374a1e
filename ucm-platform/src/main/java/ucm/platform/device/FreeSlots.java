package ucm.platform.device;

import java.util.Arrays;
import ucm.api.MemoryRegion;

/** Slots that belong to who has taken them until they are given back. Thread-safe. */
public final class FreeSlots implements SlotMemory {

  private static final int[] NONE = {};

  private final MemoryRegion region;
  private final long stride;
  // Guarded by this: a stack of the free slots, the one used last on top.
  private final int[] free;
  private int freeCount;

  /**
   * All slots are free.
   *
   * @param region has room for all; owned by the caller
   */
  public FreeSlots(MemoryRegion region, long stride, int slots) {
    this.region = region;
    this.stride = stride;
    this.free = new int[slots];
    this.freeCount = slots;
    Arrays.setAll(free, i -> slots - 1 - i);
  }

  @Override
  public MemoryRegion region() {
    return region;
  }

  @Override
  public long stride() {
    return stride;
  }

  /** How many slots there are. */
  public int size() {
    return free.length;
  }

  /** Takes so many slots; returns none when fewer are free. */
  public synchronized int[] take(int count) {
    if (freeCount < count) {
      return NONE;
    }
    freeCount -= count;
    return Arrays.copyOfRange(free, freeCount, freeCount + count);
  }

  /** Takes so many slots, as soon as they are free. */
  public synchronized int[] await(int count) throws InterruptedException {
    while (freeCount < count) {
      wait();
    }
    return take(count);
  }

  /** Gives slots back, which must not be touched any more. */
  public synchronized void release(int[] taken) {
    System.arraycopy(taken, 0, free, freeCount, taken.length);
    freeCount += taken.length;
    notifyAll();
  }

  /** How many slots are taken. */
  public synchronized int inUse() {
    return free.length - freeCount;
  }

  @Override
  public String toString() {
    return free.length + " buffers of " + stride + " bytes";
  }
}
