package ucm.store.cache.config;

import ucm.api.Transfer;
import ucm.platform.libc.IoVector;
import ucm.platform.memory.StreamingCopy;

/**
 * Moves shards between slots and an engine whose device memory is host memory. A copy is done when the
 * method returns.
 */
public final class HostDevice {

  private static final ThreadLocal<IoVector> VECTORS = ThreadLocal.withInitial(IoVector::new);

  private final PoolMemory memory;

  public HostDevice(PoolMemory memory) {
    this.memory = memory;
  }

  /** Gathers the pieces of a shard into a slot. */
  public void toSlot(Transfer transfer, int shard, int slot) {
    IoVector pieces = VECTORS.get();
    long at = memory.offset(slot);
    for (int piece = 0; piece < transfer.pieceCount(); ) {
      pieces.clear();
      while (hasNext(pieces, transfer, piece)) {
        pieces.add(
            transfer.region(shard, piece),
            transfer.offset(shard, piece),
            transfer.pieceSize(piece));
        piece++;
      }
      StreamingCopy.gather(pieces, memory.segment(slot), at);
      at += pieces.byteSize();
    }
  }

  /** Scatters a slot over the pieces of a shard. */
  public void fromSlot(int slot, Transfer transfer, int shard) {
    IoVector pieces = VECTORS.get();
    long at = memory.offset(slot);
    for (int piece = 0; piece < transfer.pieceCount(); ) {
      pieces.clear();
      while (hasNext(pieces, transfer, piece)) {
        pieces.addToWrite(
            transfer.region(shard, piece),
            transfer.offset(shard, piece),
            transfer.pieceSize(piece));
        piece++;
      }
      StreamingCopy.scatter(pieces, memory.segment(slot), at);
      at += pieces.byteSize();
    }
  }

  private static boolean hasNext(IoVector vector, Transfer transfer, int piece) {
    return piece < transfer.pieceCount() && vector.size() < IoVector.MAX_ENTRIES;
  }
}
