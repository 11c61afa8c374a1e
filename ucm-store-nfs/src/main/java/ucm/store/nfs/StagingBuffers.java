package ucm.store.nfs;

import java.lang.foreign.Arena;
import java.util.List;
import ucm.api.MemoryRegion;
import ucm.api.StoreException;
import ucm.platform.device.SlotMemory;
import ucm.platform.libc.FileException;
import ucm.platform.memory.HugeMemory;

/**
 * The host memory between device and files, cut into slots of one shard that start on a page, so that
 * direct I/O works on them. A slot belongs to the thread that took it until it is given back. Thread-safe.
 */
final class StagingBuffers implements SlotMemory {

  private static final long PAGE_BYTES = 4096;
  private static final int[] NONE = {};

  private final Arena arena;
  private final MemoryRegion region;
  private final long stride;
  private final int slots;
  // Guarded by this: a stack of the free slots.
  private final int[] free;
  private int freeCount;

  private StagingBuffers(Arena arena, MemoryRegion region, int slots, long stride) {
    this.arena = arena;
    this.region = region;
    this.slots = slots;
    this.stride = stride;
    this.free = new int[slots];
    for (int slot = 0; slot < slots; slot++) {
      free[slot] = slots - 1 - slot;
    }
    this.freeCount = slots;
  }

  /** Bytes from one slot to the next: the shard, rounded up to whole pages. */
  static long stride(long shardSize) {
    return Math.ceilDiv(shardSize, PAGE_BYTES) * PAGE_BYTES;
  }

  /**
   * Allocates slots.
   *
   * @throws StoreException when the system does not give the memory
   */
  static StagingBuffers allocate(int slots, long stride) {
    Arena arena = Arena.ofShared();
    try {
      MemoryRegion region = MemoryRegion.host(HugeMemory.map(slots * stride, arena));
      return new StagingBuffers(arena, region, slots, stride);
    } catch (FileException e) {
      arena.close();
      throw new StoreException(
          "the system did not give the "
              + slots * stride
              + " bytes of Nfs's buffers: lower "
              + NfsKeys.BUFFER_NUMBER.name(),
          e);
    }
  }

  /** How many slots there are. */
  int slots() {
    return slots;
  }

  /** Takes so many slots; returns none when there are fewer. */
  synchronized int[] take(int count) {
    if (freeCount < count) {
      return NONE;
    }
    int[] taken = new int[count];
    freeCount -= count;
    System.arraycopy(free, freeCount, taken, 0, count);
    return taken;
  }

  /** Gives a slot back, which must not be touched any more. */
  synchronized void release(int slot) {
    free[freeCount++] = slot;
  }

  /** How many slots are in use. */
  synchronized int inUse() {
    return slots - freeCount;
  }

  @Override
  public List<MemoryRegion> regions() {
    return List.of(region);
  }

  @Override
  public MemoryRegion region(int slot) {
    return region;
  }

  @Override
  public long offset(int slot) {
    return slot * stride;
  }

  /** Gives the memory back; no slot may be in use, and no device may have it pinned. */
  void free() {
    arena.close();
  }

  @Override
  public String toString() {
    return slots + " buffers of " + stride + " bytes";
  }
}
