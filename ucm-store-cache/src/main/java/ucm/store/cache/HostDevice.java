package ucm.store.cache;

import java.lang.foreign.MemorySegment;
import ucm.api.Transfer;

/**
 * Moves shards between slots and an engine whose device memory is host memory. A copy is done when the
 * method returns.
 */
final class HostDevice {

  private final PoolMemory memory;

  HostDevice(PoolMemory memory) {
    this.memory = memory;
  }

  /** Gathers the pieces of a shard into a slot. */
  void toSlot(Transfer transfer, int shard, int slot) {
    MemorySegment segment = memory.segment(slot);
    long at = memory.offset(slot);
    int pieces = transfer.pieceCount();
    for (int piece = 0; piece < pieces; piece++) {
      long size = transfer.pieceSize(piece);
      MemorySegment.copy(
          transfer.region(shard, piece).segment(),
          transfer.offset(shard, piece),
          segment,
          at,
          size);
      at += size;
    }
  }

  /** Scatters a slot over the pieces of a shard. */
  void fromSlot(int slot, Transfer transfer, int shard) {
    MemorySegment segment = memory.segment(slot);
    long at = memory.offset(slot);
    int pieces = transfer.pieceCount();
    for (int piece = 0; piece < pieces; piece++) {
      long size = transfer.pieceSize(piece);
      MemorySegment.copy(
          segment,
          at,
          transfer.region(shard, piece).segment(),
          transfer.offset(shard, piece),
          size);
      at += size;
    }
  }
}
