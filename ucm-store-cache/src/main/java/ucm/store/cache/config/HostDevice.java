package ucm.store.cache.config;

import java.lang.foreign.MemorySegment;
import ucm.api.Transfer;

/**
 * Moves shards between slots and an engine whose device memory is host memory. A copy is done when the
 * method returns.
 */
public final class HostDevice {

  private final PoolMemory memory;

  public HostDevice(PoolMemory memory) {
    this.memory = memory;
  }

  /** Gathers the segments of a shard into a slot. */
  public void toSlot(Transfer transfer, int shard, int slot) {
    MemorySegment slots = memory.segment(slot);
    long at = memory.offset(slot);
    int segments = transfer.pieceCount();
    for (int segment = 0; segment < segments; segment++) {
      long size = transfer.pieceSize(segment);
      MemorySegment from = transfer.region(shard, segment).segment();
      MemorySegment.copy(from, transfer.offset(shard, segment), slots, at, size);
      at += size;
    }
  }

  /** Scatters a slot over the segments of a shard. */
  public void fromSlot(int slot, Transfer transfer, int shard) {
    MemorySegment slots = memory.segment(slot);
    long at = memory.offset(slot);
    int segments = transfer.pieceCount();
    for (int segment = 0; segment < segments; segment++) {
      long size = transfer.pieceSize(segment);
      MemorySegment to = transfer.region(shard, segment).segment();
      MemorySegment.copy(slots, at, to, transfer.offset(shard, segment), size);
      at += size;
    }
  }
}
