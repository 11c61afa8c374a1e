package ucm.store.file.transfer;

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
 * A load or dump under way: the shards of its transfer, in groups that are moved at once.
 *
 * <p>A group is a run of shards of the same block, so that a block's file is opened once. The thread that
 * takes a group, a worker to move it or the timeout scheduler because the deadline has passed, is the
 * only one to end its shards: memory is not touched after that. It is taken by {@linkplain TransferTask#begin
 * beginning} its first shard; the others are not begun, only ended.
 */
public final class TransferJob implements ShardWorkers.Batch {

  public final TransferTask task;
  public final Transfer transfer;
  public final boolean isDump;
  public final long startNanos;
  final long deadlineNanos;
  // Several workers may find it unset; any of their times will do.
  private long firstNanos;

  /** Whether it has completed; guarded by {@link InFlightTasks}. */
  boolean isDropped;

  private final ShardMover mover;
  private final LongSupplier clock;
  private final ShardGroups groups;

  public TransferJob(
      TransferTask task, boolean isDump, ShardMover mover, LongSupplier clock, long timeoutNanos) {
    this.task = task;
    this.transfer = task.transfer();
    this.isDump = isDump;
    this.mover = mover;
    this.clock = clock;
    this.startNanos = clock.getAsLong();
    this.deadlineNanos = startNanos + timeoutNanos;
    this.groups = ShardGroups.of(transfer);
  }

  /** How many groups. */
  @Override
  public int size() {
    return groups.count();
  }

  /** Moves a group. */
  @Override
  public void run(int group) {
    if (!take(group)) {
      return;
    }
    int from = groups.start(group);
    int to = groups.end(group);
    long now = clock.getAsLong();
    if (firstNanos == 0) {
      firstNanos = now;
    }
    if (now - deadlineNanos >= 0) {
      end(from, to, ShardOutcome.EXPIRED, timeout());
      return;
    }
    try {
      mover.move(this, from, to);
    } catch (SpaceRefusedException e) {
      end(from, to, ShardOutcome.REFUSED, e);
    } catch (RuntimeException e) {
      end(from, to, ShardOutcome.FAILED, e);
    } catch (Error e) {
      end(from, to, ShardOutcome.FAILED, new StoreException("moving shards broke: " + e, e));
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
  void timeOut() {
    for (int group = 0; group < groups.count(); group++) {
      if (take(group)) {
        end(groups.start(group), groups.end(group), ShardOutcome.EXPIRED, timeout());
      }
    }
  }

  /** Ends what no worker has begun with of the blocks whose directory is down. */
  public void refuse(DirectoryHealth health) {
    for (int group = 0; group < groups.count(); group++) {
      StoreException why = refusal(group, health);
      if (why != null) {
        refuse(group, health, why);
      }
    }
  }

  /**
   * Ends everything when the directories of all blocks are down.
   *
   * @return false when one is not; then nothing has ended
   */
  public boolean refuseWhole(DirectoryHealth health) {
    StoreException why = null;
    for (int group = 0; group < groups.count(); group++) {
      why = refusal(group, health);
      if (why == null) {
        return false;
      }
    }
    for (int group = 0; why != null && group < groups.count(); group++) {
      refuse(group, health, why);
    }
    return true;
  }

  private @Nullable StoreException refusal(int group, DirectoryHealth health) {
    int shard = groups.start(group);
    return health.refusal(
        health.directoryOf(transfer.ids().high(shard), transfer.ids().low(shard)));
  }

  private void refuse(int group, DirectoryHealth health, StoreException why) {
    if (take(group)) {
      int from = groups.start(group);
      int to = groups.end(group);
      health.refused(isDump, to - from);
      end(from, to, ShardOutcome.REFUSED, why);
    }
  }

  /** Adds the blocks of which no shard, or not all, have ended. */
  public void collectOpenBlocks(Set<BlockIds> blocks) {
    for (int i = 0; i < transfer.shardCount(); i++) {
      if (!task.hasEnded(i)) {
        blocks.add(BlockIds.of(transfer.ids().high(i), transfer.ids().low(i)));
      }
    }
  }

  private boolean take(int group) {
    return task.begin(groups.start(group));
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
