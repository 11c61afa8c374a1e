package ucm.store.cache.transfer;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Transfer;
import ucm.store.cache.pool.SlotPool;

/**
 * A load. Shards in the pool are copied by the copy threads; those that are being read already are
 * waited for; the others take a slot each and are read from the next stage by one {@link NextRead}.
 */
class LoadTask extends CacheTask implements SlotPool.Waiter {

  // Null where the engine's memory is the host's.
  private final @Nullable Copy arrivals;

  LoadTask(CacheRuntime cache, long id, Transfer transfer) {
    super(cache, id, transfer, false);
    this.arrivals = transfer.isHost() ? null : new Copy(this);
  }

  @Override
  long reserve(int shard, boolean mayTake) {
    BlockIds ids = transfer.ids();
    boolean take = mayTake && cache.next != null;
    return cache.config.loadNextOnly()
        ? cache.pool.reserveUnnamed(take)
        : cache.pool.reserveForLoad(
            ids.high(shard), ids.low(shard), transfer.shardIndex(shard), this, shard, take);
  }

  @Override
  void goOn(int[] shards) {
    cache.metrics.hitShards.add(shards.length);
    cache.copy(new Copy(this, shards, slotsOf(shards)));
  }

  @Override
  void fill(int[] shards) {
    cache.metrics.missShards.add(shards.length);
    NextRead.start(this, shards, slotsOf(shards));
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
      cache.memory.copy(transfer, shard, slot, false);
      return null;
    } catch (RuntimeException | Error e) {
      // The engine's memory is gone, say: the shard fails, and the thread lives on.
      return e;
    }
  }

  /** Shards of a load that lie in slots, each slot referenced, on their way into the engine's memory. */
  private static final class Copy extends CopyBatch {

    /** Takes over shards that are there. */
    Copy(LoadTask load, int[] shards, int[] slots) {
      super(load, shards, slots, shards.length);
    }

    /** A batch that the shards of a load are put into as they arrive. */
    Copy(LoadTask load) {
      super(load, new int[load.shardCount], new int[load.shardCount], 0);
    }

    @Override
    protected void put(int shard, int slot) {
      shards[ready()] = shard;
      slots[ready()] = slot;
    }

    @Override
    protected void end(int from, int to) {
      cache.metrics.loadBytes.add(copiedBytes(from, to));
      cache.pool.release(slots, from, to);
      finishWell(from, to);
    }
  }
}
