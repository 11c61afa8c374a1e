package ucm.store.file.tier;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.platform.memory.LazyMemory;

/**
 * Host memory cut into slots of one shard that start on a page, so that direct I/O works on them. It takes
 * room as it is used, and is freed when no transfer names it any more. Thread-safe.
 */
final class Staging {

  /** No slot was free. */
  static final int NONE = -1;

  private static final long PAGE_BYTES = 4096;

  private final BlockLayout layout;
  private final long stride;
  private final MemoryRegion memory;
  // Guarded by this: the slots that are free, the one used last on top.
  private final int[] free;
  private int count;

  /** Has room for so many bytes, and for a block at least. */
  Staging(BlockLayout layout, long bytes) {
    this.layout = layout;
    stride = Math.ceilDiv(layout.shardSize(), PAGE_BYTES) * PAGE_BYTES;
    int slots = Math.clamp(bytes / stride, layout.shardCount(), Integer.MAX_VALUE / 2);
    memory = MemoryRegion.host(LazyMemory.zeros(slots * stride));
    free = new int[slots];
    count = slots;
    Arrays.setAll(free, i -> slots - 1 - i);
  }

  /** Takes a slot, or {@link #NONE}. */
  synchronized int tryTake() {
    return count == 0 ? NONE : free[--count];
  }

  /** Takes the slots of a block, when as many are free. */
  synchronized int[] takeBlock() throws InterruptedException {
    int shards = layout.shardCount();
    while (count < shards) {
      wait();
    }
    count -= shards;
    return Arrays.copyOfRange(free, count, count + shards);
  }

  /** Gives slots back; those that are {@link #NONE} are left out. */
  synchronized void give(int... slots) {
    for (int slot : slots) {
      if (slot != NONE) {
        free[count++] = slot;
      }
    }
    notifyAll();
  }

  /** Places the next shard of a packed transfer. */
  void place(Transfer.Builder builder, int slot) {
    builder.piece(memory, slot * stride);
  }

  /** Copies a shard into a slot, tensor after tensor. */
  void copy(Transfer from, int shard, int slot) {
    MemorySegment to = memory.segment();
    long at = slot * stride;
    for (int piece = 0; piece < from.pieceCount(); piece++) {
      long size = from.pieceSize(piece);
      MemorySegment.copy(
          from.region(shard, piece).segment(), from.offset(shard, piece), to, at, size);
      at += size;
    }
  }
}
