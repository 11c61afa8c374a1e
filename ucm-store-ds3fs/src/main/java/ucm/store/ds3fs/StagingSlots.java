package ucm.store.ds3fs;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** A worker's part of an iov, cut into slots of one size. For one thread. */
final class StagingSlots {

  private final UsrbioMemory iov;
  private final long start;
  private final long slotBytes;
  private final int[] free;
  private int freeCount;

  /**
   * Slots in a part of an iov.
   *
   * @param start where the part starts, in bytes
   */
  StagingSlots(UsrbioMemory iov, long start, int count, long slotBytes) {
    this.iov = iov;
    this.start = start;
    this.slotBytes = slotBytes;
    free = new int[count];
    Arrays.setAll(free, i -> i);
    freeCount = count;
  }

  /** Takes a slot; -1 when all are taken. */
  int take() {
    return freeCount == 0 ? -1 : free[--freeCount];
  }

  void giveBack(int slot) {
    free[freeCount++] = slot;
  }

  /** Where a slot is in {@link #memory}, in bytes. */
  long offset(int slot) {
    return start + slot * slotBytes;
  }

  long slotBytes() {
    return slotBytes;
  }

  MemorySegment memory() {
    return iov.segment;
  }

  /** The {@code struct hf3fs_iov}. */
  MemorySegment handle() {
    return iov.handle;
  }
}
