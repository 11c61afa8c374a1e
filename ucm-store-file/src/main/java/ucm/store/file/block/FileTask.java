package ucm.store.file.block;

import java.util.Arrays;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.thread.ShardWorkers;
import ucm.store.file.space.SpaceRefusedException;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * A load or dump: the shards of its transfer, in groups that are moved at once, and only where the directory
 * is not down.
 *
 * <p>A group is a run of shards of the same block, so that a block's file is opened once. The thread that
 * takes a group, a worker to move it or the one of the deadlines, is the only one to end its shards: memory
 * is not touched after that. It is taken by {@linkplain #begin beginning} its first shard; the others are
 * not begun, only ended.
 *
 * <p>The shards that make a block whole end after its commit, so that a dump that went well and brought a
 * block whole has made it durable, as far as configured.
 */
public final class FileTask extends TransferTask implements ShardWorkers.Batch {

  /** Moves shards one way: from files or into them. */
  @FunctionalInterface
  public interface Mover {

    /**
     * Moves shards of one block that follow one another in a transfer, and ends each of them. For those
     * not ended when it throws, the caller does it.
     *
     * @param from first shard, inclusive
     * @param to last shard, exclusive
     * @throws RuntimeException when the file system fails
     */
    void move(FileTask task, int from, int to);
  }

  // More than this is moved by several workers.
  private static final long MAX_GROUP_BYTES = 4L << 20;

  private final boolean writes;
  private final Mover mover;
  private final Volumes volumes;
  private final LongSupplier clock;
  private final long startNanos;
  // Several workers may find it unset; any of their times will do.
  private long firstNanos;
  // Where each group starts; the number of shards after the last.
  private final int[] starts;

  /** A task that begins now. */
  public FileTask(
      long id,
      Transfer transfer,
      boolean writes,
      Mover mover,
      Volumes volumes,
      LongSupplier clock) {
    super(id, transfer);
    this.writes = writes;
    this.mover = mover;
    this.volumes = volumes;
    this.clock = clock;
    this.startNanos = clock.getAsLong();
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
    if (hasBegun(starts[group]) || expireIfPast() || !take(group)) {
      return;
    }
    int from = starts[group];
    int to = starts[group + 1];
    if (firstNanos == 0) {
      firstNanos = clock.getAsLong();
    }
    Volume volume = volume(group);
    volume.enter();
    StoreException refusal = volume.refusal();
    RuntimeException fault = refusal == null ? move(from, to) : refusal;
    // Before the task can end: a caller that waited for it finds the breaker as it is now.
    volume.leave(refusal == null, fault);
    if (refusal != null) {
      refuse(from, to, refusal);
    } else if (fault instanceof SpaceRefusedException) {
      endRest(from, to, ShardOutcome.REFUSED, fault);
    } else if (fault != null) {
      endRest(from, to, ShardOutcome.FAILED, fault);
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

  /** Whether it is a dump. */
  public boolean writes() {
    return writes;
  }

  /** How long it waited until a worker took it; to its end when none did. */
  public long waitNanos(long endNanos) {
    return (firstNanos == 0 ? endNanos : firstNanos) - startNanos;
  }

  /** How long it has taken. */
  public long nanos(long endNanos) {
    return endNanos - startNanos;
  }

  /** Ends shards, those that have not ended yet. */
  void endRest(int from, int to, ShardOutcome outcome, @Nullable Throwable fault) {
    for (int i = from; i < to; i++) {
      if (!hasEnded(i)) {
        end(i, outcome, fault);
      }
    }
  }

  void endOk(int from, int to) {
    endRest(from, to, ShardOutcome.OK, null);
  }

  @Override
  public void expire(StoreException why) {
    for (int group = 0; group < size(); group++) {
      if (take(group)) {
        endRest(starts[group], starts[group + 1], ShardOutcome.EXPIRED, why);
      }
    }
  }

  /** Ends what no worker has begun with of the blocks whose directory is down. */
  public void refuse() {
    for (int group = 0; group < size(); group++) {
      StoreException why = volume(group).refusal();
      if (why != null && take(group)) {
        refuse(starts[group], starts[group + 1], why);
      }
    }
  }

  /** Ends it when the directories of all its blocks are down; else ends nothing, and returns false. */
  public boolean refuseWhole() {
    for (int group = 0; group < size(); group++) {
      if (!volume(group).isDown()) {
        return false;
      }
    }
    refuse();
    return true;
  }

  private void refuse(int from, int to, StoreException why) {
    volumes.refused(writes, to - from);
    endRest(from, to, ShardOutcome.REFUSED, why);
  }

  private Volume volume(int group) {
    BlockIds ids = transfer().ids();
    return volumes.of(ids.high(starts[group]), ids.low(starts[group]));
  }

  private boolean take(int group) {
    return begin(starts[group]);
  }

  /** Names it in logs, as the original does. */
  public String name(String store) {
    return "%s task(%d,%s,%d,%d)"
        .formatted(
            store,
            id(),
            writes ? "Cache2Backend" : "Backend2Cache",
            transfer().shardCount(),
            transfer().byteSize());
  }
}
