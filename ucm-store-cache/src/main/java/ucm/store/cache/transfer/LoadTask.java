package ucm.store.cache.transfer;

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
    super(cache, id, transfer);
    this.arrivals = transfer.isHost() ? null : LoadCopy.ofArrivals(this);
  }

  @Override
  String operation() {
    return "LOAD";
  }

  @Override
  TaskMetrics counted() {
    return cache.metrics.loads;
  }

  @Override
  long plan(long fullStripes) {
    ShardSlots hits = new ShardSlots(shardCount);
    ShardSlots misses = new ShardSlots(Math.min(shardCount, cache.memory.slots()));
    long full = reserve(fullStripes, hits, misses);
    if (hits.size() > 0) {
      cache.metrics.hitShards.add(hits.size());
      cache.copyToEngine(new LoadCopy(this, hits));
    }
    if (misses.size() > 0) {
      cache.metrics.missShards.add(misses.size());
      NextRead.start(cache, this, misses);
    }
    return full;
  }

  /** Takes the slots that there are; says which stripes have none. */
  private synchronized long reserve(long fullStripes, ShardSlots hits, ShardSlots misses) {
    BlockIds ids = transfer.ids();
    SlotPool pool = cache.pool;
    boolean around = cache.config.loadNextOnly();
    boolean hasNext = cache.next != null;
    long full = hasNext ? fullStripes : SlotPool.ALL_STRIPES;
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
              ? pool.reserveUnnamed(high, low, full)
              : pool.reserveForLoad(high, low, transfer.shardIndex(shard), this, shard, full);
      if (hasNext && Reservation.kind(reservation) == Reservation.NO_ROOM) {
        full |= 1L << Reservation.number(reservation);
        if (again && pool.isFull(full)) {
          // Or a task much larger than the pool would be walked through for each free slot.
          break;
        }
        continue;
      }
      todo.clear(shard);
      switch (Reservation.kind(reservation)) {
        case Reservation.HIT -> hits.add(shard, Reservation.number(reservation));
        case Reservation.RESERVED -> misses.add(shard, Reservation.number(reservation));
        case Reservation.FILLING -> cache.metrics.joinedShards.increment();
        default -> {
          cache.metrics.missShards.increment();
          endUntaken(shard, ShardOutcome.MISSING, null);
        }
      }
    }
    keepTodo();
    return full;
  }

  @Override
  public void filled(int shard, int slot) {
    if (arrivals != null) {
      arrived(arrivals, shard, slot);
      return;
    }
    if (!take(shard)) {
      cache.pool.release(slot);
      return;
    }
    Throwable fault = copyOut(shard, slot);
    cache.pool.release(slot);
    copied(shard, fault);
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

  /** Takes over a slot that the next stage has filled, and the filler's reference to it. */
  void arrived(int shard, int slot) {
    if (arrivals != null) {
      cache.pool.filled(slot, false);
      arrived(arrivals, shard, slot);
      return;
    }
    if (!take(shard)) {
      cache.pool.filled(slot, true);
      return;
    }
    Throwable fault = copyOut(shard, slot);
    cache.pool.filled(slot, true);
    copied(shard, fault);
  }

  /** The thread of a next stage, or of another task, has no business with the device. */
  private void arrived(LoadCopy copy, int shard, int slot) {
    if (!cache.engineDevice.loads().add(copy, shard, slot)) {
      cache.pool.release(slot);
      endUntaken(shard, ShardOutcome.FAILED, new StoreClosedException("Cache"));
    }
  }

  /** Copies a shard that was begun into the engine's memory; returns what went wrong, or null. */
  @Nullable Throwable copyOut(int shard, int slot) {
    try {
      cache.memory.fromSlot(slot, transfer, shard);
      return null;
    } catch (RuntimeException | Error e) {
      // The engine's memory is gone, say: the shard fails, and the copy thread lives on.
      return e;
    }
  }

  /** Ends a shard after {@link #copyOut}. */
  private void copied(int shard, @Nullable Throwable fault) {
    if (fault == null) {
      countLoaded(1);
    }
    finish(shard, fault == null ? ShardOutcome.OK : ShardOutcome.FAILED, fault);
  }

  /** Counts shards that came well into the engine's memory. */
  void countLoaded(int shards) {
    cache.metrics.loadBytes.add(shards * transfer.layout().shardSize());
  }
}
