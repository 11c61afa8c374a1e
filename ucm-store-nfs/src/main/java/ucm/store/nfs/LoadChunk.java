package ucm.store.nfs;

import org.jspecify.annotations.Nullable;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.platform.device.DeviceCopies;

/** Shards on their way from files to the device: each is copied as soon as it is in its slot. */
final class LoadChunk extends StagedChunk {

  // The shards of the chunk in the order in which they arrived.
  private final int[] arrived;

  LoadChunk(Staging staging, StagedTransfer staged, int first, int[] slots) {
    super(staging, staged, first, slots, 0);
    this.arrived = new int[slots.length];
  }

  @Override
  void start() {
    Transfer inner = inHost(Transfer.packed(staged.transfer.layout()));
    if (inner == null) {
      return;
    }
    try {
      Task task = staging.files().load(inner);
      task.whenTerminal(() -> ended(task));
    } catch (RuntimeException e) {
      for (int i = 0; i < slots.length; i++) {
        giveUp(i, ShardOutcome.FAILED, e);
      }
    }
  }

  @Override
  ShardListener listener() {
    return this::shardEnded;
  }

  private void shardEnded(Transfer inner, int i, ShardOutcome outcome) {
    if (outcome == ShardOutcome.OK && !staging.device().loads().add(this, i, slots[i])) {
      giveUp(i, ShardOutcome.FAILED, new StoreClosedException(NfsStore.NAME));
    }
  }

  /** Those that went well are with the device; of the others the cause is known only now. */
  private void ended(Task task) {
    TransferResult result = task.result();
    for (int i = 0; i < slots.length; i++) {
      if (result.outcome(i) != ShardOutcome.OK) {
        giveUp(i, result.outcome(i), result.cause());
      }
    }
    staging.pump();
  }

  private void giveUp(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    release(i);
    staged.endUnlessBegun(first + i, outcome, cause);
  }

  @Override
  int shardAt(int n) {
    return arrived[n];
  }

  @Override
  protected void put(int i, int slot) {
    arrived[ready()] = i;
  }

  @Override
  protected void begin(int from, int to) {
    for (int n = from; n < to; n++) {
      if (!staged.begin(first + arrived[n])) {
        release(arrived[n]);
      }
    }
  }

  @Override
  void queue(DeviceCopies copies, int i) {
    copies.fromSlot(slots[i], staged.transfer, first + i);
  }

  @Override
  protected void fail(int from, int to, Throwable cause, boolean done) {
    for (int n = from; n < to; n++) {
      int i = arrived[n];
      if (slots[i] != NONE) {
        if (done) {
          release(i);
        } else {
          lose(i);
        }
        staged.end(first + i, ShardOutcome.FAILED, cause);
      }
    }
  }

  @Override
  protected void end(int from, int to) {
    for (int n = from; n < to; n++) {
      int i = arrived[n];
      if (slots[i] != NONE) {
        release(i);
        staged.end(first + i, ShardOutcome.OK, null);
      }
    }
    staging.pump();
  }
}
