package ucm.store.file.tier;

import java.util.Arrays;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.platform.memory.HugeMemory;
import ucm.store.file.eviction.BlockUses;

/**
 * Moves blocks from one tier to the other through host memory. It is cut into slots of one shard that start on
 * a page, so that direct I/O works on them; it takes room as it is used, and is freed when no transfer names
 * it any more. Thread-safe.
 */
final class Staging {

  private static final long PAGE_BYTES = 4096;

  /** Told once how a move ended; the block's slots are free again. */
  interface End {

    /**
     * Called on a thread of either tier.
     *
     * @param isMoved whether the other tier has the block now
     * @param why what went wrong; null also where the first tier has the block no more
     */
    void ended(boolean isMoved, @Nullable RuntimeException why);
  }

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
    memory = MemoryRegion.host(HugeMemory.lazy(slots * stride));
    free = new int[slots];
    count = slots;
    Arrays.setAll(free, i -> slots - 1 - i);
  }

  /** How many blocks it has room for. */
  int blocks() {
    return free.length / layout.shardCount();
  }

  /**
   * Loads a block from one tier, which verifies it, and dumps it to the other. That is no use of the block in
   * the first tier: it stays as cold as it was. Waits for slots, and for nothing else.
   */
  void move(BlockIds id, Function<Transfer, Task> load, Function<Transfer, Task> dump, End end)
      throws InterruptedException {
    int[] slots = take();
    End last =
        (isMoved, why) -> {
          give(slots);
          end.ended(isMoved, why);
        };
    run(
        () -> load.apply(transfer(id, BlockUses.NO_USE, slots)),
        last,
        () ->
            run(
                () -> dump.apply(transfer(id, ShardListener.NONE, slots)),
                last,
                () -> last.ended(true, null)));
  }

  private static void run(Supplier<Task> step, End end, Runnable next) {
    try {
      Task task = step.get();
      task.whenTerminal(
          () -> {
            TransferResult result = task.result();
            if (result.ok()) {
              next.run();
            } else {
              end.ended(false, fault(result));
            }
          });
    } catch (RuntimeException e) {
      end.ended(false, e);
    }
  }

  private static @Nullable StoreException fault(TransferResult result) {
    // A block that was removed meanwhile is not to be moved.
    return result.outcome(result.failedShards().nextSetBit(0)) == ShardOutcome.MISSING
        ? null
        : new StoreException(result.toString(), result.cause());
  }

  /** Takes the slots of a block, as soon as so many are free. */
  private synchronized int[] take() throws InterruptedException {
    int shards = layout.shardCount();
    while (count < shards) {
      wait();
    }
    count -= shards;
    return Arrays.copyOfRange(free, count, count + shards);
  }

  private synchronized void give(int... slots) {
    for (int slot : slots) {
      free[count++] = slot;
    }
    notifyAll();
  }

  private Transfer transfer(BlockIds id, ShardListener listener, int... slots) {
    Transfer.Builder builder = Transfer.packed(layout).expect(slots.length);
    for (int shard = 0; shard < slots.length; shard++) {
      builder.shard(id, 0, shard).piece(memory, slots[shard] * stride);
    }
    return builder.build(listener);
  }
}
