package ucm.store.nfs;

import java.lang.foreign.Arena;
import java.util.Arrays;
import ucm.api.MemoryRegion;
import ucm.api.StoreException;
import ucm.platform.device.SlotMemory;
import ucm.platform.libc.FileException;
import ucm.platform.memory.HugeMemory;

/**
 * The host memory between device and files, cut into slots of one shard that start on a page, so that
 * direct I/O works on them. A slot belongs to the chunk that took it until it is given back. Thread-safe.
 */
final class StagingBuffers implements SlotMemory {

  private static final long PAGE_BYTES = 4096;
  private static final int[] NONE = {};

  private final Arena arena = Arena.ofShared();
  private final MemoryRegion region;
  private final long stride;
  // Guarded by this: a stack of the free slots.
  private final int[] free;
  private int freeCount;

  /** Allocates slots; throws {@link StoreException} when the system does not give the memory. */
  StagingBuffers(int slots, long stride) {
    this.stride = stride;
    this.free = new int[slots];
    this.freeCount = slots;
    Arrays.setAll(free, i -> slots - 1 - i);
    try {
      region = MemoryRegion.host(HugeMemory.map(slots * stride, arena));
    } catch (FileException e) {
      arena.close();
      throw new StoreException(
          String.format(
              "the system did not give the %s bytes of Nfs's buffers: lower %s",
              slots * stride, NfsConfig.BUFFER_NUMBER.name()),
          e);
    }
  }

  /** Bytes from one slot to the next: the shard, rounded up to whole pages. */
  static long stride(long shardSize) {
    return Math.ceilDiv(shardSize, PAGE_BYTES) * PAGE_BYTES;
  }

  @Override
  public long stride() {
    return stride;
  }

  int slots() {
    return free.length;
  }

  /** Takes so many slots; returns none when there are fewer. */
  synchronized int[] take(int count) {
    if (freeCount < count) {
      return NONE;
    }
    freeCount -= count;
    return Arrays.copyOfRange(free, freeCount, freeCount + count);
  }

  /** Gives slots back, which must not be touched any more. */
  synchronized void release(int[] taken) {
    System.arraycopy(taken, 0, free, freeCount, taken.length);
    freeCount += taken.length;
  }

  synchronized int inUse() {
    return free.length - freeCount;
  }

  @Override
  public MemoryRegion region() {
    return region;
  }

  /** Gives the memory back; no slot may be in use, and no device may have it pinned. */
  void free() {
    arena.close();
  }

  @Override
  public String toString() {
    return free.length + " buffers of " + stride + " bytes";
  }
}
