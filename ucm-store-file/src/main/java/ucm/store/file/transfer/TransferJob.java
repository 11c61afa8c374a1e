package ucm.store.file.transfer;

import java.util.Arrays;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.thread.ShardWorkers;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.space.SpaceRefusedException;

/**
 * A load or dump under way: the shards of its transfer, in groups that are moved at once, and only where
 * the directory is not down.
 *
 * <p>A group is a run of shards of the same block, so that a block's file is opened once. The thread that
 * takes a group, a worker to move it or the timeout scheduler because the deadline has passed, is the
 * only one to end its shards: memory is not touched after that. It is taken by {@linkplain TransferTask#begin
 * beginning} its first shard; the others are not begun, only ended.
 */
public final class TransferJob implements ShardWorkers.Batch {

  // More than this is moved by several workers.
  private static final long MAX_GROUP_BYTES = 4L << 20;

  public final TransferTask task;
  public final Transfer transfer;
  public final boolean isDump;
  public final long startNanos;
  public final long deadlineNanos;
  // Several workers may find it unset; any of their times will do.
  private long firstNanos;

  /** Whether it has completed; guarded by the lock of those that have not. */
  public boolean hasCompleted;

  private final ShardMover mover;
  private final DirectoryHealth health;
  private final LongSupplier clock;
  // Where each group starts; the number of shards after the last.
  private final int[] starts;

  public TransferJob(
      TransferTask task,
      boolean isDump,
      ShardMover mover,
      DirectoryHealth health,
      LongSupplier clock,
      long timeoutNanos) {
    this.task = task;
    this.transfer = task.transfer();
    this.isDump = isDump;
    this.mover = mover;
    this.health = health;
    this.clock = clock;
    this.startNanos = clock.getAsLong();
    this.deadlineNanos = startNanos + timeoutNanos;
    this.starts = groups(transfer);
  }

  /** Cuts a transfer into groups. */
  static int[] groups(Transfer transfer) {
    BlockIds ids = transfer.ids();
    int longest =
        Math.clamp(
            MAX_GROUP_BYTES / transfer.layout().shardSize(), 1, transfer.layout().shardCount());
    int[] starts = new int[ids.size() + 1];
    int count = 0;
    for (int i = 1; i < ids.size(); i++) {
      boolean isSame = ids.high(i) == ids.high(i - 1) && ids.low(i) == ids.low(i - 1);
      if (!isSame || i - starts[count] == longest) {
        starts[++count] = i;
      }
    }
    starts[ids.isEmpty() ? 0 : ++count] = ids.size();
    return Arrays.copyOf(starts, count + 1);
  }

  /** How many groups. */
  @Override
  public int size() {
    return starts.length - 1;
  }

  /** Moves a group. */
  @Override
  public void run(int group) {
    if (!take(group)) {
      return;
    }
    int from = starts[group];
    int to = starts[group + 1];
    long now = clock.getAsLong();
    if (firstNanos == 0) {
      firstNanos = now;
    }
    if (now - deadlineNanos >= 0) {
      end(from, to, ShardOutcome.EXPIRED, timeout());
      return;
    }
    int directory = directory(group);
    health.enter(directory);
    StoreException refusal = health.refusal(directory);
    RuntimeException fault = refusal == null ? move(from, to) : refusal;
    // Before the task can end: a caller that waited for it finds the breaker as it is now.
    health.leave(directory, refusal == null, fault);
    if (refusal != null) {
      refuse(from, to, refusal);
    } else if (fault instanceof SpaceRefusedException) {
      end(from, to, ShardOutcome.REFUSED, fault);
    } else if (fault != null) {
      end(from, to, ShardOutcome.FAILED, fault);
    }
  }

  private @Nullable RuntimeException move(int from, int to) {
    try {
      mover.move(this, from, to);
      return null;
    } catch (RuntimeException e) {
      return e;
    } catch (Error e) {
      return new StoreException("moving shards broke: " + e, e);
    }
  }

  /** How long it waited until a worker took it; to its end when none did. */
  public long waitNanos(long endNanos) {
    return (firstNanos == 0 ? endNanos : firstNanos) - startNanos;
  }

  /** Ends shards well, those that have not ended yet. */
  public void endOk(int from, int to) {
    for (int i = from; i < to; i++) {
      if (!task.hasEnded(i)) {
        task.ok(i);
      }
    }
  }

  /** Ends what no worker has begun with. */
  public void timeOut() {
    for (int group = 0; group < size(); group++) {
      if (take(group)) {
        end(starts[group], starts[group + 1], ShardOutcome.EXPIRED, timeout());
      }
    }
  }

  /** Ends what no worker has begun with of the blocks whose directory is down. */
  public void refuse() {
    for (int group = 0; group < size(); group++) {
      StoreException why = health.refusal(directory(group));
      if (why != null && take(group)) {
        refuse(starts[group], starts[group + 1], why);
      }
    }
  }

  /**
   * Ends everything when the directories of all blocks are down.
   *
   * @return false when one is not; then nothing has ended
   */
  public boolean refuseWhole() {
    StoreException why = null;
    for (int group = 0; group < size(); group++) {
      why = health.refusal(directory(group));
      if (why == null) {
        return false;
      }
    }
    for (int group = 0; why != null && group < size(); group++) {
      if (take(group)) {
        refuse(starts[group], starts[group + 1], why);
      }
    }
    return true;
  }

  private void refuse(int from, int to, StoreException why) {
    health.refused(isDump, to - from);
    end(from, to, ShardOutcome.REFUSED, why);
  }

  private int directory(int group) {
    int shard = starts[group];
    return health.directoryOf(transfer.ids().high(shard), transfer.ids().low(shard));
  }

  /** Adds its blocks. */
  public void collectBlocks(Set<BlockIds> blocks) {
    for (int group = 0; group < size(); group++) {
      blocks.add(block(starts[group]));
    }
  }

  private BlockIds block(int shard) {
    return BlockIds.of(transfer.ids().high(shard), transfer.ids().low(shard));
  }

  /** Adds the blocks of which no shard, or not all, have ended. */
  public void collectOpenBlocks(Set<BlockIds> blocks) {
    for (int i = 0; i < transfer.shardCount(); i++) {
      if (!task.hasEnded(i)) {
        blocks.add(block(i));
      }
    }
  }

  private boolean take(int group) {
    return task.begin(starts[group]);
  }

  private void end(int from, int to, ShardOutcome outcome, RuntimeException cause) {
    mover.notMoved(this, from, cause);
    for (int i = from; i < to; i++) {
      if (!task.hasEnded(i)) {
        task.end(i, outcome, cause);
      }
    }
  }

  private StoreException timeout() {
    return new StoreException(
        "task "
            + task.id()
            + " of "
            + transfer
            + " passed its deadline before all of it was begun: raise timeout_ms, or find out what"
            + " holds up the file system");
  }
}
