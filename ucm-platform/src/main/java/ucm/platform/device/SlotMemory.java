package ucm.platform.device;

import ucm.api.MemoryRegion;

/** Host memory that is cut into slots of one shard, for copies to and from a device. Thread-safe. */
public interface SlotMemory {

  /** What slots start on a multiple of, so that direct I/O works on them: the system's page. */
  long PAGE_BYTES = 4096;

  /** Bytes from one slot to the next: the shard, rounded up to whole pages. */
  static long stride(long shardSize) {
    return Math.ceilDiv(shardSize, PAGE_BYTES) * PAGE_BYTES;
  }

  /** All memory of the slots, one after the other. */
  MemoryRegion region();

  /** Bytes from one slot to the next: whole pages. */
  long stride();

  /** Where a slot starts in the region, in bytes. */
  default long offset(int slot) {
    return slot * stride();
  }
}
