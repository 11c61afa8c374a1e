package ucm.store.cache.transfer;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.thread.ShardWorkers;
import ucm.store.cache.pool.SlotPool.Reservation;

/**
 * A load or dump of the engine under way.
 *
 * <p>A thread that touches the engine's memory for a shard must {@linkplain #take take} it; only one
 * can, and the deadline is one of those that try. So a copy in progress at the deadline finishes, and one
 * that comes later does not start: the memory is the engine's again once the task has completed.
 *
 * <p>A task is planned by one thread at a time, the caller's first and then the dispatcher's, which
 * tries again for the shards that found no slot.
 */
abstract class CacheTask extends TransferTask {

  private static final Logger LOG = LoggerFactory.getLogger(CacheTask.class);

  final CacheRuntime cache;
  final Transfer transfer;
  final boolean isDump;

  /** The shards that are not planned yet; touched by the planning thread only. */
  final BitSet todo;

  /** The slot of each shard that was given one; touched by the planning thread only. */
  final int[] slotOf;

  final int shardCount;

  /** The copies that were handed to the copy threads last; null before, and where a device copies. */
  volatile ShardWorkers.@Nullable Remainder copies;

  private int todoCount;
  private volatile boolean wantsRoom;
  private volatile @Nullable StoreException expiry;
  private final long startNanos;
  // Several threads may find it unset; any of their times will do.
  private long firstNanos;

  CacheTask(CacheRuntime cache, long id, Transfer transfer, boolean isDump) {
    super(id, transfer);
    this.cache = cache;
    this.isDump = isDump;
    this.transfer = transfer;
    this.shardCount = transfer.shardCount();
    this.slotOf = new int[shardCount];
    this.todo = new BitSet(shardCount);
    todo.set(0, shardCount);
    this.startNanos = System.nanoTime();
  }

  /**
   * Tries for the shards of {@link #todo}; those that find no slot stay there, those that have expired
   * do not.
   *
   * @param mayTake whether slots may be taken
   * @return false when none may be taken, or there are no more
   */
  final boolean plan(boolean mayTake) {
    BitSet there = new BitSet();
    BitSet reserved = new BitSet();
    boolean room = reserve(mayTake, there, reserved);
    if (!there.isEmpty()) {
      goOn(members(there));
    }
    if (!reserved.isEmpty()) {
      fill(members(reserved));
    }
    return room;
  }

  /** Not by a stream: its classes take a millisecond of the first load of a process. */
  static int[] members(BitSet set) {
    int[] members = new int[set.cardinality()];
    int at = 0;
    for (int one = set.nextSetBit(0); one >= 0; one = set.nextSetBit(one + 1)) {
      members[at++] = one;
    }
    return members;
  }

  private synchronized boolean reserve(boolean mayTake, BitSet there, BitSet reserved) {
    BitSet expired = new BitSet();
    BitSet missing = new BitSet();
    boolean room;
    // No other task takes slots in between: those of a block lie one behind the other.
    synchronized (cache.pool) {
      room = reserve(mayTake, there, reserved, expired, missing);
    }
    for (int shard : members(expired)) {
      hasExpired(shard);
    }
    cache.metrics.missShards.add(missing.cardinality());
    for (int shard : members(missing)) {
      endUntaken(shard, ShardOutcome.MISSING, null);
    }
    keepTodo();
    return room;
  }

  private boolean reserve(
      boolean mayTake, BitSet there, BitSet reserved, BitSet expired, BitSet missing) {
    boolean room = mayTake;
    boolean again = wantsRoom;
    for (int shard = todo.nextSetBit(0); shard >= 0; shard = todo.nextSetBit(shard + 1)) {
      if (hasBegun(shard)) {
        todo.clear(shard);
        expired.set(shard);
        continue;
      }
      long reservation = reserve(shard, room);
      int kind = Reservation.kind(reservation);
      if (kind == Reservation.NO_ROOM && (isDump || cache.next != null)) {
        room = false;
        if (again) {
          // Or a task much larger than the pool would be walked through for each free slot.
          break;
        }
        continue;
      }
      todo.clear(shard);
      slotOf[shard] = Reservation.number(reservation);
      switch (kind) {
        case Reservation.HIT -> there.set(shard);
        case Reservation.RESERVED -> reserved.set(shard);
        case Reservation.FILLING -> cache.metrics.joinedShards.increment();
        default -> missing.set(shard);
      }
    }
    return room;
  }

  /** Asks the pool for a shard; takes a slot for it if it may and has to. */
  abstract long reserve(int shard, boolean mayTake);

  /** A shard that was to be planned has expired. */
  void hasExpired(int shard) {}

  /** Goes on with shards that are in the pool. */
  abstract void goOn(int[] shards);

  /** Has the slots that these shards reserved filled. */
  abstract void fill(int[] shards);

  /** All shards have ended; the task is not seen to have completed yet. */
  void ended() {}

  /** Counts and logs the task when it ends; until then the engine waits for it. */
  final void start() {
    cache.writes.busy(1);
    beforeTerminal(
        () -> {
          ended();
          cache.writes.busy(-1);
          long nanos = System.nanoTime() - startNanos;
          cache
              .metrics
              .tasks(isDump)
              .ended(shardCount, transfer.byteSize(), firstNanos - startNanos, nanos);
        });
    if (LOG.isDebugEnabled()) {
      LOG.debug("Cache {} dispatching.", describe());
      whenTerminal(this::logEnd);
    }
  }

  /** Takes the right, and the duty, to move a shard and to {@link #finish} it; false when it ended. */
  final boolean take(int shard) {
    if (firstNanos == 0) {
      firstNanos = System.nanoTime();
    }
    return begin(shard);
  }

  /** Ends a shard that was taken. */
  final void finish(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    try {
      end(shard, outcome, fault);
    } catch (RuntimeException e) {
      // The engine's listener broke its contract; the shard has ended, and slots must not leak.
      LOG.error("Cache {}: the listener of shard {} threw", describe(), shard, e);
    }
  }

  /** Ends a shard without touching its memory, unless it was taken before. */
  final void endUntaken(int shard, ShardOutcome outcome, @Nullable Throwable fault) {
    if (take(shard)) {
      finish(shard, outcome, fault);
    }
  }

  /** The slots of some shards that have one. */
  final int[] slotsOf(int[] shards) {
    int[] slots = new int[shards.length];
    for (int i = 0; i < slots.length; i++) {
      slots[i] = slotOf[shards[i]];
    }
    return slots;
  }

  /** Whether shards are left that found no slot. */
  final boolean wantsRoom() {
    return wantsRoom;
  }

  /** Puts a shard back that was planned. */
  final synchronized void again(int shard) {
    todo.set(shard);
    keepTodo();
  }

  private void keepTodo() {
    todoCount = todo.cardinality();
    wantsRoom = todoCount > 0;
  }

  /**
   * A transfer of shards between their slots and the next stage, those of an index on, to another
   * exclusive, but for those that have a negative number.
   */
  final Transfer onward(int[] shards, int[] slots, int from, int to, ShardListener listener) {
    Transfer.Builder onward = Transfer.packed(transfer.layout()).expect(to - from);
    for (int i = from; i < to; i++) {
      if (slots[i] >= 0) {
        onward
            .shard(transfer.ids(), shards[i], transfer.shardIndex(shards[i]))
            .piece(cache.memory.region(), cache.memory.offset(slots[i]));
      }
    }
    return onward.build(listener);
  }

  @Override
  protected final boolean help() {
    ShardWorkers.Remainder left = copies;
    return left != null && left.runOne();
  }

  @Override
  protected final void expire(StoreException why) {
    StoreException cause = wantsRoom ? foundNoSlot() : why;
    expiry = cause;
    for (int shard = 0; shard < shardCount; shard++) {
      if (take(shard)) {
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

  private StoreException foundNoSlot() {
    return new StoreException(
        """
        Cache %s found no slot for %s shards within timeout_ms %s: all %s slots of the pool are in \
        use; raise cache_buffer_capacity_gb, now %s\
        """
            .formatted(
                describe(),
                todoCount,
                cache.config.timeoutMs(),
                cache.pool.limit(),
                cache.config.capacityGb()));
  }

  private void logEnd() {
    double millis = (System.nanoTime() - startNanos) / 1e6;
    LOG.debug("Cache {} finished, cost {}ms.", describe(), Math.round(millis * 1e3) / 1e3);
  }

  private String describe() {
    String operation = isDump ? "DUMP" : "LOAD";
    return "task(" + id() + "," + operation + "," + shardCount + "," + transfer.byteSize() + ")";
  }
}
