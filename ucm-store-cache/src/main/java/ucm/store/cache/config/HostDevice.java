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

  /** Gathers the segments of a shard into a slot. */
  public void toSlot(Transfer transfer, int shard, int slot) {
    IoVector segments = VECTORS.get();
    long at = memory.offset(slot);
    for (int segment = 0; segment < transfer.pieceCount(); ) {
      segments.clear();
      while (hasNext(segments, transfer, segment)) {
        segments.add(
            transfer.region(shard, segment),
            transfer.offset(shard, segment),
            transfer.pieceSize(segment));
        segment++;
      }
      StreamingCopy.gather(segments, memory.segment(slot), at);
      at += segments.byteSize();
    }
  }

  /** Scatters a slot over the segments of a shard. */
  public void fromSlot(int slot, Transfer transfer, int shard) {
    IoVector segments = VECTORS.get();
    long at = memory.offset(slot);
    for (int segment = 0; segment < transfer.pieceCount(); ) {
      segments.clear();
      while (hasNext(segments, transfer, segment)) {
        segments.addToWrite(
            transfer.region(shard, segment),
            transfer.offset(shard, segment),
            transfer.pieceSize(segment));
        segment++;
      }
      StreamingCopy.scatter(segments, memory.segment(slot), at);
      at += segments.byteSize();
    }
  }

  private static boolean hasNext(IoVector vector, Transfer transfer, int segment) {
    return segment < transfer.pieceCount() && vector.size() < IoVector.MAX_ENTRIES;
  }
}
