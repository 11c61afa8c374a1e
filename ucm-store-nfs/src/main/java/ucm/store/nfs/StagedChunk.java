package ucm.store.nfs;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.platform.device.DeviceBatch;
import ucm.platform.device.DeviceCopies;
import ucm.store.nfs.Staging.StagedTask;

/**
 * Some neighbouring shards of a {@link StagedTask} that have a buffer each, and that files take or give
 * in one transfer.
 *
 * <p>A shard of a dump ends when it is in its buffer, as its bytes have left the engine's memory; when all
 * of the chunk are, files take them. A shard of a load is copied to the device as soon as it is in its buffer.
 */
final class StagedChunk extends DeviceBatch {

  private static final int MAX_RUN = 32;
  private static final long MAX_RUN_BYTES = 1 << 20;

  private final Staging staging;
  private final StagedTask staged;
  private final int first;
  private final int[] slots;
  private final int run;

  // The shards of the chunk in the order in which they can be copied.
  private final int[] arrived;
  // Those that the chunk has begun and that have not failed.
  private final boolean[] begun;
  private final AtomicInteger open;
  private volatile boolean isLost;

  /**
   * Takes over buffers.
   *
   * @param first the first shard of the transfer that is in it
   * @param slots the buffer of each shard
   */
  StagedChunk(Staging staging, StagedTask staged, int first, int[] slots) {
    super(staged.isDump() ? slots.length : 0);
    this.staging = staging;
    this.staged = staged;
    this.first = first;
    this.slots = slots;
    this.run = Math.clamp(MAX_RUN_BYTES / staged.transfer().layout().shardSize(), 1, MAX_RUN);
    this.arrived = new int[slots.length];
    this.begun = new boolean[slots.length];
    this.open = new AtomicInteger(slots.length);
    if (staged.isDump()) {
      Arrays.setAll(arrived, i -> i);
    }
  }

  /** Begins with it. Does not block, and does not throw. */
  void start() {
    try {
      if (staged.isDump()) {
        staging.device.dumps().submit(this, Math.ceilDiv(slots.length, run));
      } else {
        Arrays.fill(begun, true);
        Task task = staging.files.move(staged, inHost(this::shardArrived));
        task.whenTerminal(() -> filesEnded(task));
      }
    } catch (RuntimeException e) {
      for (int i = 0; i < slots.length; i++) {
        giveUp(i, ShardOutcome.FAILED, e);
      }
    }
  }

  /** The transfer between the buffers of what was begun and the files. */
  private Transfer inHost(ShardListener listener) {
    Transfer whole = staged.transfer();
    Transfer.Builder builder = Transfer.packed(whole.layout());
    for (int i = 0; i < slots.length; i++) {
      if (begun[i]) {
        builder.shard(whole.ids(), first + i, whole.shardIndex(first + i));
        builder.piece(staging.buffers().region(), staging.buffers().offset(slots[i]));
      }
    }
    return builder.build(listener);
  }

  private void shardArrived(Transfer inner, int i, ShardOutcome outcome) {
    if (outcome == ShardOutcome.OK && !staging.device.loads().add(this, i, slots[i])) {
      giveUp(i, ShardOutcome.FAILED, new StoreClosedException(NfsStore.NAME));
    }
  }

  /** Those that went well are with the device; of the others the cause is known only now. */
  private void filesEnded(Task task) {
    TransferResult result = task.result();
    for (int i = 0; i < slots.length; i++) {
      if (result.outcome(i) != ShardOutcome.OK) {
        giveUp(i, result.outcome(i), result.cause());
      }
    }
  }

  /** Ends a shard that the device does not have, unless its time has passed. */
  private void giveUp(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    begun[i] = staged.begin(first + i);
    if (begun[i]) {
      endBadly(i, outcome, cause);
    }
    passed(1);
  }

  private void endBadly(int i, ShardOutcome outcome, @Nullable Throwable cause) {
    begun[i] = false;
    staged.end(first + i, outcome, cause);
  }

  @Override
  protected int run() {
    return run;
  }

  @Override
  protected long event() {
    return staged.transfer().event();
  }

  @Override
  protected void put(int i, int slot) {
    arrived[ready()] = i;
  }

  @Override
  protected void begin(int from, int to) {
    for (int n = from; n < to; n++) {
      begun[arrived[n]] = staged.begin(first + arrived[n]);
    }
  }

  @Override
  protected void queue(DeviceCopies copies, int from, int to) {
    for (int n = from; n < to; n++) {
      int i = arrived[n];
      if (begun[i]) {
        copies.add(staged.transfer(), first + i, slots[i], staged.isDump());
      }
    }
  }

  @Override
  protected void fail(int from, int to, Throwable cause, boolean done) {
    isLost |= !done;
    for (int n = from; n < to; n++) {
      if (begun[arrived[n]]) {
        endBadly(arrived[n], ShardOutcome.FAILED, cause);
      }
    }
  }

  @Override
  protected void end(int from, int to) {
    for (int n = from; n < to; n++) {
      if (begun[arrived[n]]) {
        staged.end(first + arrived[n], ShardOutcome.OK, null);
      }
    }
    passed(to - from);
  }

  /** Counts shards that are done with; the count publishes what was begun to the last thread. */
  private void passed(int shards) {
    if (open.addAndGet(-shards) > 0) {
      return;
    }
    if (staged.isDump()) {
      handOn();
    } else {
      ended();
    }
  }

  private void handOn() {
    Transfer inner = inHost(ShardListener.NONE);
    if (inner.shardCount() == 0) {
      ended();
      return;
    }
    try {
      Task task = staging.files.move(staged, inner);
      task.whenTerminal(
          () -> {
            staging.files.failed(task.result().failedBlocks(), task.result().cause());
            ended();
          });
    } catch (RuntimeException e) {
      staging.files.failed(inner.ids(), e);
      ended();
    }
  }

  /** Gives the buffers back, unless a late copy may still come into them. */
  private void ended() {
    if (!isLost) {
      staging.buffers().release(slots);
    }
    staging.chunkEnded(staged);
    staging.pump();
  }
}
