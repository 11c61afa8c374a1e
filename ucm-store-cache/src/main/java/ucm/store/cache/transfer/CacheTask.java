package ucm.store.cache.transfer;

import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;

/**
 * A load or dump of the engine under way.
 *
 * <p>A thread that touches the engine's memory for a shard must {@linkplain #begin begin} it; only one
 * can, and the timeout scheduler is one of those that try. So a copy in progress at the deadline finishes, and one
 * that comes later does not start: the memory is the engine's again once the task has completed.
 *
 * <p>A task is planned by one thread at a time, the caller's first and then the dispatcher's, which
 * tries again for the shards that found no slot.
 */
abstract class CacheTask {

  private static final Logger LOG = LoggerFactory.getLogger(CacheTask.class);

  final CacheRuntime cache;
  final Transfer transfer;
  final TransferTask task;

  /** When it expires; guarded by the lock of {@link TimeoutScheduler}. */
  long deadlineNanos;

  /** The shards that are not planned yet; touched by the planning thread only. */
  final BitSet todo;

  /** How many shards the task has. */
  final int shardCount;

  private int todoCount;
  private volatile boolean wantsRoom;
  private volatile @Nullable StoreException expiry;
  private final AtomicInteger open;
  private final long startNanos;
  // Several threads may find it unset; any of their times will do.
  private long firstNanos;

  CacheTask(CacheRuntime cache, long id, Transfer transfer) {
    this.cache = cache;
    this.transfer = transfer;
    this.task = new TransferTask(id, transfer);
    this.shardCount = transfer.shardCount();
    this.open = new AtomicInteger(shardCount);
    this.todo = new BitSet(shardCount);
    todo.set(0, shardCount);
    this.startNanos = System.nanoTime();
  }

  /** What logs call it. */
  abstract String operation();

  /** Where its direction is counted. */
  abstract TaskMetrics counted();

  /**
   * Tries for the shards of {@link #todo}; those that find no slot stay there, those that have expired
   * do not.
   *
   * @param fullStripes the stripes not to take slots of
   * @return the stripes found full by now
   */
  abstract long plan(long fullStripes);

  /** Has the task scheduled, and logs that it begins. */
  final Task start() {
    if (LOG.isDebugEnabled()) {
      LOG.debug("Cache {} dispatching.", describe());
    }
    cache.timeouts.add(this);
    if (shardCount == 0) {
      leave();
    }
    if (LOG.isDebugEnabled()) {
      task.whenTerminal(this::logEnd);
    }
    return task;
  }

  /** Takes the right, and the duty, to move a shard and to {@link #finish} it; false when it ended. */
  final boolean begin(int shard) {
    if (firstNanos == 0) {
      firstNanos = System.nanoTime();
    }
    return task.begin(shard);
  }

  /** Whether no thread moves a shard, or has moved it. */
  final boolean isOpen(int shard) {
    return !task.hasBegun(shard);
  }

  /** Ends a shard that was begun. */
  final void finish(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    leave(1);
    tell(shard, outcome, fault);
  }

  /** Ends well those shards of a run that were begun; negative numbers are passed over. */
  final void finishWell(int[] shards, int from, int to) {
    int count = 0;
    for (int i = from; i < to; i++) {
      count += shards[i] >= 0 ? 1 : 0;
    }
    leave(count);
    for (int i = from; i < to; i++) {
      if (shards[i] >= 0) {
        tell(shards[i], ShardOutcome.OK, null);
      }
    }
  }

  /** Ends a shard without touching its memory, unless it has ended. */
  final void end(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    if (begin(shard)) {
      finish(shard, outcome, fault);
    }
  }

  /** Whether shards are left that found no slot. */
  final boolean wantsRoom() {
    return wantsRoom;
  }

  /** Keeps the shards that are in {@link #todo} for the next time. */
  final void keepTodo() {
    todoCount = todo.cardinality();
    wantsRoom = todoCount > 0;
  }

  /** Ends all shards whose move has not begun. */
  final void expire() {
    StoreException cause = describeExpiry();
    expiry = cause;
    for (int shard = 0; shard < shardCount; shard++) {
      if (begin(shard)) {
        cache.metrics.expiredShards.increment();
        finish(shard, ShardOutcome.EXPIRED, cause);
      }
    }
    if (wantsRoom) {
      cache.dispatcher.wake();
    }
  }

  /** Why shards expired; null before the deadline. */
  final @Nullable StoreException expiry() {
    return expiry;
  }

  private StoreException describeExpiry() {
    if (wantsRoom) {
      return new StoreException(
          "Cache "
              + describe()
              + " found no slot for "
              + todoCount
              + " shards within timeout_ms "
              + cache.config.timeoutMs()
              + ": all "
              + cache.memory.slots()
              + " slots of the pool are in use; raise cache_buffer_capacity_gb, now "
              + cache.config.capacityGb());
    }
    return new StoreTimeoutException(
        "Cache "
            + describe()
            + " was not done within timeout_ms "
            + cache.config.timeoutMs()
            + ": the next stage or the copies were too slow; raise timeout_ms, or look there");
  }

  private void tell(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    try {
      task.end(shard, outcome, fault);
    } catch (RuntimeException e) {
      // The engine's listener broke its contract; the shard has ended, and slots must not leak.
      LOG.error("Cache {}: the listener of shard {} threw", describe(), shard, e);
    }
  }

  /** Some shards are about to end. */
  private void leave(int shards) {
    if (shards > 0 && open.addAndGet(-shards) == 0) {
      leave();
    }
  }

  /** Makes room for the next task; before the last shard ends, as its waiter may hand one in. */
  private void leave() {
    cache.timeouts.remove(this);
    cache.admission.leave(shardCount);
    if (shardCount > 0) {
      long nanos = System.nanoTime() - startNanos;
      counted().ended(shardCount, transfer.byteSize(), firstNanos - startNanos, nanos);
    }
  }

  private void logEnd() {
    double millis = (System.nanoTime() - startNanos) / 1e6;
    LOG.debug("Cache {} finished, cost {}ms.", describe(), Math.round(millis * 1e3) / 1e3);
  }

  private String describe() {
    return "task("
        + task.id()
        + ","
        + operation()
        + ","
        + shardCount
        + ","
        + transfer.byteSize()
        + ")";
  }
}
