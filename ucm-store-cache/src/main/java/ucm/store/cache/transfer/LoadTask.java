package ucm.store.cache.transfer;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Transfer;
import ucm.store.cache.pool.Reservation;
import ucm.store.cache.pool.SlotPool;
import ucm.store.cache.pool.SlotWaiter;

/**
 * A load. Shards in the pool are copied by the copy threads; those that are being read already are
 * waited for; the others take a slot each and are read from the next stage by one {@link NextRead}.
 */
final class LoadTask extends CacheTask implements SlotWaiter {

  // Null where the engine's memory is the host's.
  private final @Nullable LoadCopy arrivals;

  LoadTask(CacheRuntime cache, long id, Transfer transfer) {
    super(cache, id, transfer, false);
    this.arrivals = transfer.isHost() ? null : new LoadCopy(this);
  }

  @Override
  boolean plan(boolean mayTake) {
    BitSet hits = new BitSet();
    BitSet misses = new BitSet();
    boolean room = reserve(mayTake, hits, misses);
    if (!hits.isEmpty()) {
      int[] shards = hits.stream().toArray();
      cache.metrics.hitShards.add(shards.length);
      cache.copy(new LoadCopy(this, shards, slotsOf(shards)));
    }
    if (!misses.isEmpty()) {
      int[] shards = misses.stream().toArray();
      cache.metrics.missShards.add(shards.length);
      NextRead.start(this, shards, slotsOf(shards));
    }
    return room;
  }

  /** Takes the slots that there are; says whether there may be more. */
  private synchronized boolean reserve(boolean mayTake, BitSet hits, BitSet misses) {
    BlockIds ids = transfer.ids();
    SlotPool pool = cache.pool;
    boolean around = cache.config.loadNextOnly();
    boolean hasNext = cache.next != null;
    boolean room = mayTake;
    boolean again = wantsRoom();
    for (int shard = todo.nextSetBit(0); shard >= 0; shard = todo.nextSetBit(shard + 1)) {
      if (hasBegun(shard)) {
        todo.clear(shard);
        continue;
      }
      long high = ids.high(shard);
      long low = ids.low(shard);
      long reservation =
          around
              ? pool.reserveUnnamed(room && hasNext)
              : pool.reserveForLoad(
                  high, low, transfer.shardIndex(shard), this, shard, room && hasNext);
      if (hasNext && Reservation.kind(reservation) == Reservation.NO_ROOM) {
        room = false;
        if (again) {
          // Or a task much larger than the pool would be walked through for each free slot.
          break;
        }
        continue;
      }
      todo.clear(shard);
      slotOf[shard] = Reservation.number(reservation);
      switch (Reservation.kind(reservation)) {
        case Reservation.HIT -> hits.set(shard);
        case Reservation.RESERVED -> misses.set(shard);
        case Reservation.FILLING -> cache.metrics.joinedShards.increment();
        default -> {
          cache.metrics.missShards.increment();
          endUntaken(shard, ShardOutcome.MISSING, null);
        }
      }
    }
    keepTodo();
    return room;
  }

  @Override
  public void filled(int shard, int slot) {
    arrived(shard, slot, false);
  }

  @Override
  public void notFilled(int shard, ShardOutcome outcome, @Nullable Throwable cause) {
    if (cache.isShared() && outcome != ShardOutcome.MISSING) {
      // What ended another store's read, its close for example, need not end this one.
      cache.dispatcher.retry(this, shard);
    } else {
      endUntaken(shard, outcome, cause);
    }
  }

  /** Puts a shard back that was planned. */
  synchronized void again(int shard) {
    todo.set(shard);
    keepTodo();
  }

  /**
   * Takes over a slot that is filled, and a reference to it.
   *
   * @param byThis whether the next stage has filled it for this task: then the pool does not know yet
   */
  void arrived(int shard, int slot, boolean byThis) {
    if (arrivals != null) {
      // The thread of a next stage, or of another task, has no business with the device.
      if (byThis) {
        cache.pool.filled(slot, false);
      }
      if (!cache.engineDevice.loads().add(arrivals, shard, slot)) {
        cache.pool.release(slot);
        endUntaken(shard, ShardOutcome.FAILED, new StoreClosedException("Cache"));
      }
      return;
    }
    boolean taken = take(shard);
    Throwable fault = taken ? copyOut(shard, slot) : null;
    if (byThis) {
      cache.pool.filled(slot, true);
    } else {
      cache.pool.release(slot);
    }
    if (taken && fault == null) {
      cache.metrics.loadBytes.add(transfer.layout().shardSize());
    }
    if (taken) {
      finish(shard, fault == null ? ShardOutcome.OK : ShardOutcome.FAILED, fault);
    }
  }

  /** Copies a shard that was begun into the engine's memory; returns what went wrong, or null. */
  private @Nullable Throwable copyOut(int shard, int slot) {
    try {
      cache.memory.fromSlot(slot, transfer, shard);
      return null;
    } catch (RuntimeException | Error e) {
      // The engine's memory is gone, say: the shard fails, and the thread lives on.
      return e;
    }
  }
}
