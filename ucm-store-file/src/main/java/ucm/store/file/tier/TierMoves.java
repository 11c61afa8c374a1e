package ucm.store.file.tier;

import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.platform.device.FreeSlots;
import ucm.platform.device.SlotMemory;
import ucm.platform.memory.HugeMemory;

/**
 * Moves blocks from one tier to the other through host memory. It is cut into slots of one shard that start on
 * a page, so that direct I/O works on them; it takes room as it is used, and is freed when no transfer names
 * it any more. Thread-safe.
 */
final class TierMoves {

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
  private final Function<Transfer, Task> load;
  private final Function<Transfer, Task> dump;
  private final FreeSlots slots;

  /**
   * Has room for so many bytes, and for a block at least.
   *
   * @param load from one tier, such that it is no use of the block: see {@link
   *     ucm.store.file.FileStore#loadToCopy}
   * @param dump to the other
   */
  TierMoves(
      BlockLayout layout,
      long bytes,
      Function<Transfer, Task> load,
      Function<Transfer, Task> dump) {
    this.layout = layout;
    this.load = load;
    this.dump = dump;
    long stride = SlotMemory.stride(layout.shardSize());
    int count = Math.clamp(bytes / stride, layout.shardCount(), Integer.MAX_VALUE / 2);
    slots = new FreeSlots(MemoryRegion.host(HugeMemory.lazy(count * stride)), stride, count);
  }

  /** How many blocks it has room for. */
  int blocks() {
    return slots.size() / blockShards();
  }

  /** How many shards a block has. */
  int blockShards() {
    return layout.shardCount();
  }

  /**
   * Loads a block from one tier, which verifies it, and dumps it to the other. Waits for slots, and for nothing
   * else.
   */
  void move(BlockIds id, End end) throws InterruptedException {
    int[] taken = slots.await(layout.shardCount());
    End last =
        (isMoved, why) -> {
          slots.release(taken);
          end.ended(isMoved, why);
        };
    run(
        () -> load.apply(transfer(id, taken)),
        last,
        () -> run(() -> dump.apply(transfer(id, taken)), last, () -> last.ended(true, null)));
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

  private Transfer transfer(BlockIds id, int... taken) {
    Transfer.Builder builder = Transfer.packed(layout).expect(taken.length);
    for (int shard = 0; shard < taken.length; shard++) {
      builder.shard(id, 0, shard).piece(slots.region(), slots.offset(taken[shard]));
    }
    return builder.build();
  }
}
