package ucm.store.nfs;

import java.util.concurrent.atomic.AtomicInteger;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.platform.device.DeviceCopies;

/**
 * Shards on their way from the device to files. A shard ends when it is in its slot, as its bytes have left
 * the engine's memory; when all of the chunk are, files take them.
 */
final class DumpChunk extends StagedChunk {

  private final AtomicInteger open;

  DumpChunk(Staging staging, StagedTransfer staged, int first, int[] slots) {
    super(staging, staged, first, slots, slots.length);
    this.open = new AtomicInteger(slots.length);
  }

  @Override
  void start() {
    try {
      staging.device().dumps().submit(this, Math.ceilDiv(slots.length, run()));
    } catch (RuntimeException e) {
      int mine = 0;
      for (int i = 0; i < slots.length; i++) {
        release(i);
        if (staged.endUnlessBegun(first + i, ShardOutcome.FAILED, e)) {
          staging.failed(staged.transfer, first + i, e);
          mine++;
        }
      }
      staging.settled(staged, mine);
    }
  }

  @Override
  int shardAt(int n) {
    return n;
  }

  @Override
  ShardListener listener() {
    return ShardListener.NONE;
  }

  @Override
  protected void begin(int from, int to) {
    for (int i = from; i < to; i++) {
      if (!staged.begin(first + i)) {
        release(i);
      }
    }
  }

  @Override
  void queue(DeviceCopies copies, int i) {
    copies.toSlot(staged.transfer, first + i, slots[i]);
  }

  @Override
  protected void fail(int from, int to, Throwable cause, boolean done) {
    int failed = 0;
    for (int i = from; i < to; i++) {
      if (slots[i] != NONE) {
        if (done) {
          release(i);
        } else {
          lose(i);
        }
        staging.failed(staged.transfer, first + i, cause);
        staged.end(first + i, ShardOutcome.FAILED, cause);
        failed++;
      }
    }
    staging.settled(staged, failed);
  }

  @Override
  protected void end(int from, int to) {
    for (int i = from; i < to; i++) {
      if (slots[i] != NONE) {
        staged.end(first + i, ShardOutcome.OK, null);
      }
    }
    // The decrement publishes the slots to the thread that completes the chunk.
    if (open.addAndGet(from - to) == 0) {
      handOn();
    }
  }

  private void handOn() {
    Transfer inner = inHost(Transfer.packed(staged.transfer.layout()));
    if (inner == null) {
      staging.pump();
      return;
    }
    try {
      Task task = staging.files().dump(inner);
      task.whenTerminal(this::releaseAll);
    } catch (RuntimeException e) {
      for (int i = 0; i < slots.length; i++) {
        if (slots[i] != NONE) {
          staging.failed(staged.transfer, first + i, e);
        }
      }
      releaseAll();
    }
    // After the files have it: a flush that sees it settled asks them.
    staging.settled(staged, inner.shardCount());
  }

  private void releaseAll() {
    for (int i = 0; i < slots.length; i++) {
      if (slots[i] != NONE) {
        release(i);
      }
    }
    staging.pump();
  }
}
