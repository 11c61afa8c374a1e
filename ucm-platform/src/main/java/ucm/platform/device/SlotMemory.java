package ucm.platform.device;

import ucm.api.MemoryRegion;

/** Host memory that is cut into slots of one shard, for copies to and from a device. Thread-safe. */
public interface SlotMemory {

  /** All memory of the slots, one after the other. */
  MemoryRegion region();

  /** Bytes from one slot to the next: a multiple of the system's page. */
  long stride();

  /** Where a slot starts in the region, in bytes. */
  default long offset(int slot) {
    return slot * stride();
  }
}
