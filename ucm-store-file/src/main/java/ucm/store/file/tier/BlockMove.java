package ucm.store.file.tier;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.store.file.eviction.BlockUses;

/** A block on its way from one tier through staging memory to the other. Nothing in here waits. */
final class BlockMove {

  /** Starts a load or a dump. */
  interface Mover {
    Task start(Transfer transfer);
  }

  /** Told once how it ended; the staging memory has been given back. */
  interface End {

    /**
     * Called on a thread of either tier.
     *
     * @param isMoved whether the other tier has the block now
     * @param why what went wrong; null also where the first tier has the block no more
     */
    void ended(boolean isMoved, @Nullable RuntimeException why);
  }

  private final Staging staging;
  private final BlockIds id;
  private final int[] slots;
  private final Mover dump;
  private final End end;

  private BlockMove(Staging staging, int[] slots, BlockIds id, Mover dump, End end) {
    this.staging = staging;
    this.id = id;
    this.slots = slots;
    this.dump = dump;
    this.end = end;
  }

  /**
   * Loads a block into staging memory, which verifies it, and dumps it from there. That is no use of the
   * block in the first tier: it stays as cold as it was.
   */
  static void start(Staging staging, int[] slots, BlockIds id, Mover load, Mover dump, End end) {
    BlockMove move = new BlockMove(staging, slots, id, dump, end);
    try {
      Task task = load.start(staging.block(id, BlockUses.NO_USE, slots));
      task.whenTerminal(() -> move.loaded(task.result()));
    } catch (RuntimeException e) {
      move.end(false, e);
    }
  }

  private void loaded(TransferResult result) {
    if (!result.ok()) {
      int first = result.failedShards().nextSetBit(0);
      // One that was removed meanwhile is not to be moved.
      end(false, result.outcome(first) == ShardOutcome.MISSING ? null : fault(result));
      return;
    }
    try {
      Task task = dump.start(staging.block(id, ShardListener.NONE, slots));
      task.whenTerminal(() -> dumped(task.result()));
    } catch (RuntimeException e) {
      end(false, e);
    }
  }

  private void dumped(TransferResult result) {
    end(result.ok(), result.ok() ? null : fault(result));
  }

  private static StoreException fault(TransferResult result) {
    return new StoreException(result.toString(), result.cause());
  }

  private void end(boolean isMoved, @Nullable RuntimeException why) {
    staging.give(slots);
    end.ended(isMoved, why);
  }
}
