package ucm.store.file.tier;

import java.util.Arrays;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.platform.memory.LazyMemory;

/**
 * Host memory cut into slots of one shard that start on a page, so that direct I/O works on them. It takes
 * room as it is used, and is freed when no transfer names it any more. Thread-safe.
 */
final class Staging {

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

  /** How many blocks it has room for. */
  int blocks() {
    return free.length / layout.shardCount();
  }

  /** Takes the slots of a block, as soon as so many are free. */
  synchronized int[] takeBlock() throws InterruptedException {
    int shards = layout.shardCount();
    while (count < shards) {
      wait();
    }
    count -= shards;
    return Arrays.copyOfRange(free, count, count + shards);
  }

  /** Gives slots back. */
  synchronized void give(int... slots) {
    for (int slot : slots) {
      free[count++] = slot;
    }
    notifyAll();
  }

  /** A transfer of a block in its slots. */
  Transfer block(BlockIds id, ShardListener listener, int... slots) {
    Transfer.Builder builder = Transfer.packed(layout).expect(slots.length);
    for (int shard = 0; shard < slots.length; shard++) {
      builder.shard(id, 0, shard).piece(memory, slots[shard] * stride);
    }
    return builder.build(listener);
  }
}
