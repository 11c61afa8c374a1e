package ucm.store.file.tier;

import java.util.Arrays;
import java.util.BitSet;
import java.util.function.Consumer;
import java.util.function.Supplier;
import ucm.api.QueueFullException;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/** Some shards of a transfer as a transfer of their own, in the same memory. */
final class ShardSelection {

  private final Transfer from;
  private final int[] shards;

  private ShardSelection(Transfer from, int[] shards) {
    this.from = from;
    this.shards = shards;
  }

  /** All of them. */
  static ShardSelection all(Transfer from) {
    int[] shards = new int[from.shardCount()];
    Arrays.setAll(shards, shard -> shard);
    return new ShardSelection(from, shards);
  }

  /** Those of this selection at these places of it. */
  ShardSelection at(BitSet places) {
    return new ShardSelection(from, places.stream().map(place -> shards[place]).toArray());
  }

  int size() {
    return shards.length;
  }

  /** Which shard of the whole transfer stands at a place. */
  int shard(int place) {
    return shards[place];
  }

  /**
   * Starts to move them in a stage for a task of the whole transfer. When the stage does not take them, they
   * end at once.
   */
  void start(TransferTask task, Supplier<Task> call, Consumer<TransferResult> then) {
    Task started;
    try {
      started = call.get();
    } catch (RuntimeException e) {
      end(task, e instanceof QueueFullException ? ShardOutcome.REFUSED : ShardOutcome.FAILED, e);
      return;
    }
    started.whenTerminal(() -> then.accept(started.result()));
  }

  /** Ends them, as shards of a task of the whole transfer. */
  void end(TransferTask task, ShardOutcome outcome, Throwable why) {
    for (int shard : shards) {
      task.end(shard, outcome, why);
    }
  }

  /** The transfer; its shard i is {@link #shard} i of the whole. */
  Transfer transfer(ShardListener listener) {
    boolean isScattered = from.pieceCount() == from.layout().tensorCount();
    Transfer.Builder builder =
        (isScattered ? Transfer.scattered(from.layout()) : Transfer.packed(from.layout()))
            .expect(shards.length)
            .after(from.event());
    for (int shard : shards) {
      builder.shard(from.ids(), shard, from.shardIndex(shard));
      for (int piece = 0; piece < from.pieceCount(); piece++) {
        builder.piece(from.region(shard, piece), from.offset(shard, piece));
      }
    }
    return builder.build(listener);
  }
}
