package ucm.platform.device;

import ucm.api.MemoryRegion;

/** Host memory that is cut into slots of one shard, for copies to and from a device. Thread-safe. */
public interface SlotMemory {

  /** The region a slot lies in. */
  MemoryRegion region(int slot);

  /** Where a slot starts in its region, in bytes. */
  long offset(int slot);

  /** Bytes from one slot to the next in a region: a multiple of the system's page. */
  long stride();

  /** All memory of the slots, each stretch once; what is to be pinned. */
  Iterable<MemoryRegion> regions();
}
