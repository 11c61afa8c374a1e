package ucm.server.staging;

import java.util.Arrays;

/**
 * Which slots are free. All segments of an engine have the same slots in use, as the ranks hold parts
 * of the same blocks. A quarter is kept for saves: a look-up does not take it. Thread-safe.
 */
public final class SlotPool {

  private static final int PART_FOR_SAVES = 4;

  private final int[] free;
  // Guarded by this.
  private int count;

  public SlotPool(int slots) {
    free = new int[slots];
    for (int i = 0; i < slots; i++) {
      free[i] = slots - 1 - i;
    }
    count = slots;
  }

  /** How many slots there are. */
  public int size() {
    return free.length;
  }

  /** How many are free. */
  public synchronized int free() {
    return count;
  }

  /**
   * Takes slots for blocks to be held.
   *
   * @return as many as are to be had, at most {@code wanted}
   */
  public synchronized int[] takeForLoads(int wanted) {
    return take(Math.min(wanted, count - free.length / PART_FOR_SAVES));
  }

  /**
   * Takes slots for blocks to be saved.
   *
   * @return as many as are to be had, at most {@code wanted}
   */
  public synchronized int[] takeForSaves(int wanted) {
    return take(Math.min(wanted, count));
  }

  private int[] take(int wanted) {
    int taken = Math.max(0, wanted);
    count -= taken;
    return Arrays.copyOfRange(free, count, count + taken);
  }

  /** Gives slots back. */
  public synchronized void give(int[] slots) {
    System.arraycopy(slots, 0, free, count, slots.length);
    count += slots.length;
  }
}
