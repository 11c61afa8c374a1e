package ucm.store.cache;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Transfer;

/**
 * A load. Shards in the pool are copied by the copy threads; those that somebody reads already are
 * waited for; the others take a slot each and are read from the backend by one {@link BackendRead}.
 */
final class LoadWork extends Work implements SlotWaiter {

  // Null where the engine's memory is the host's.
  private final @Nullable LoadCopy arrivals;

  LoadWork(OpenCache cache, long id, Transfer transfer) {
    super(cache, id, transfer);
    int shards = transfer.shardCount();
    this.arrivals =
        transfer.isHost() ? null : LoadCopy.empty(this, new int[shards], new int[shards]);
  }

  @Override
  String operation() {
    return "LOAD";
  }

  @Override
  WorkMetrics counted() {
    return cache.metrics.loads;
  }

  @Override
  synchronized long plan(long fullStripes) {
    BlockIds ids = transfer.ids();
    SlotDirectory pool = cache.pool;
    boolean around = cache.config.loadBackendOnly();
    boolean hasBackend = cache.backend != null;
    int count = todoCount;
    int left = 0;
    int hits = 0;
    int misses = count;
    // Hits are put in from the front, misses from the back.
    int[] shards = new int[count];
    int[] slots = new int[count];
    long full = hasBackend ? fullStripes : SlotDirectory.ALL_STRIPES;
    boolean again = wantsRoom();
    for (int i = 0; i < count; i++) {
      int shard = todo[i];
      if (!isOpen(shard)) {
        continue;
      }
      long high = ids.high(shard);
      long low = ids.low(shard);
      long claim =
          around
              ? pool.claimUnnamed(high, low, full)
              : pool.claimForLoad(high, low, transfer.shardIndex(shard), this, shard, full);
      switch (Claim.kind(claim)) {
        case Claim.HIT -> {
          shards[hits] = shard;
          slots[hits++] = Claim.number(claim);
        }
        case Claim.CLAIMED -> {
          shards[--misses] = shard;
          slots[misses] = Claim.number(claim);
        }
        case Claim.FILLING -> cache.metrics.joinedShards.increment();
        default -> {
          if (hasBackend) {
            full |= 1L << Claim.number(claim);
            todo[left++] = shard;
            if (again && pool.isFull(full)) {
              left = keepRest(i + 1, count, left);
              i = count;
            }
          } else {
            cache.metrics.missShards.increment();
            end(shard, ShardOutcome.MISSING, null);
          }
        }
      }
    }
    keep(left);
    if (hits > 0) {
      cache.metrics.hitShards.add(hits);
      cache.copyToEngine(new LoadCopy(this, shards, slots, hits));
    }
    if (misses < count) {
      cache.metrics.missShards.add(count - misses);
      BackendRead.start(cache, this, shards, slots, misses, count);
    }
    return full;
  }

  @Override
  public void filled(int shard, int slot) {
    if (arrivals != null) {
      arrived(arrivals, shard, slot);
      return;
    }
    if (!begin(shard)) {
      cache.pool.release(slot);
      return;
    }
    Throwable fault = copyOut(shard, slot);
    cache.pool.release(slot);
    copied(shard, fault);
  }

  @Override
  public void notFilled(int shard, ShardOutcome outcome, @Nullable Throwable cause) {
    end(shard, outcome, cause);
  }

  @Override
  public void abandoned(int shard) {
    cache.dispatcher.retry(this, shard);
  }

  /** Puts a shard back that was planned; waits while the task is being planned. */
  synchronized void again(int shard) {
    todo[todoCount] = shard;
    keep(todoCount + 1);
  }

  /** Takes over a slot that the backend has filled, and the filler's reference to it. */
  void arrived(int shard, int slot) {
    if (arrivals != null) {
      cache.pool.filled(slot, false);
      arrived(arrivals, shard, slot);
      return;
    }
    if (!begin(shard)) {
      cache.pool.filled(slot, true);
      return;
    }
    Throwable fault = copyOut(shard, slot);
    cache.pool.filled(slot, true);
    copied(shard, fault);
  }

  /** The thread of a backend, or of another task, has no business with the device. */
  private void arrived(LoadCopy copy, int shard, int slot) {
    if (!cache.engineDevice.loads().add(copy, shard, slot)) {
      cache.pool.release(slot);
      end(shard, ShardOutcome.FAILED, new StoreClosedException("Cache"));
    }
  }

  /** Copies a shard that was begun into the engine's memory; returns what went wrong, or null. */
  @Nullable Throwable copyOut(int shard, int slot) {
    try {
      cache.device.fromSlot(slot, transfer, shard);
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
