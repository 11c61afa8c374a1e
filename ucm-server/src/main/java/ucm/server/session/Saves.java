package ucm.server.session;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.server.staging.SlotPool;

/**
 * Blocks on their way from the engine to the store. A plan makes a save; each rank fills its slots and
 * says so; then the rank's part is stored, once it is known that what it was computed from was loaded
 * well on all ranks. A block is found when the parts of all ranks are stored. Thread-safe.
 */
final class Saves {

  private static final long LIFE_NANOS = TimeUnit.SECONDS.toNanos(300);

  private final SlotPool pool;
  private final Quarantine quarantine;
  private final int ranks;
  private final IntFunction<@Nullable RankTransfers> transfers;
  private final LongSupplier clock;
  // Guarded by this.
  private final Map<Long, Save> saves = new HashMap<>();
  private long lastId;
  private long storedBlocks;

  /**
   * Saves nothing.
   *
   * @param ranks how many store parts of a block
   * @param transfers what stores the part of a rank
   */
  Saves(
      SlotPool pool,
      Quarantine quarantine,
      int ranks,
      IntFunction<@Nullable RankTransfers> transfers,
      LongSupplier clock) {
    this.pool = pool;
    this.quarantine = quarantine;
    this.ranks = ranks;
    this.transfers = transfers;
    this.clock = clock;
  }

  /**
   * Makes a save.
   *
   * @param slots one for each block, taken from the pool
   * @param basis ends with whether what the blocks are computed from is right
   * @return its number
   */
  synchronized long begin(
      String requestId, BlockIds ids, int[] slots, CompletableFuture<Boolean> basis) {
    Save save = new Save(++lastId, requestId, ids, slots, ranks, basis, clock.getAsLong());
    saves.put(save.id, save);
    return save.id;
  }

  /**
   * A rank has filled the slots of saves, or gives them up.
   *
   * @param filled whether the slots hold the blocks
   */
  void saved(int rank, long[] ids, boolean filled) {
    for (long id : ids) {
      Save save = claim(rank, id);
      if (save != null) {
        CompletableFuture<Void> _ =
            save.basis.thenAccept(isRight -> store(save, rank, filled && isRight));
      }
    }
  }

  private synchronized @Nullable Save claim(int rank, long id) {
    Save save = saves.get(id);
    if (save == null || !save.awaited.get(rank)) {
      return null;
    }
    save.awaited.clear(rank);
    save.storing.set(rank);
    return save;
  }

  private void store(Save save, int rank, boolean right) {
    RankTransfers rankTransfers = transfers.apply(rank);
    boolean stores;
    synchronized (this) {
      stores = right && !save.dropped && rankTransfers != null;
    }
    if (stores) {
      rankTransfers.save(save.requestId, save.ids, save.slots, () -> ended(save, rank, true));
    } else {
      ended(save, rank, false);
    }
  }

  private synchronized void ended(Save save, int rank, boolean stored) {
    save.storing.clear(rank);
    storedBlocks += stored && rank == 0 ? save.ids.size() : 0;
    endIfIdle(save);
  }

  /** Stores nothing of what was planned so far: it may be computed from wrong bytes. */
  synchronized void dropAll() {
    saves.values().forEach(save -> save.dropped = true);
  }

  /** A client is gone, which may still be copying: what is not in its slots yet is given up. */
  synchronized void abandonAll() {
    for (Save save : List.copyOf(saves.values())) {
      abandon(save);
    }
  }

  /** Gives saves up that were planned long ago. */
  synchronized void sweep() {
    long now = clock.getAsLong();
    for (Save save : List.copyOf(saves.values())) {
      if (now - save.sinceNanos > LIFE_NANOS) {
        abandon(save);
      }
    }
  }

  private void abandon(Save save) {
    save.dropped = true;
    save.abandoned |= !save.awaited.isEmpty();
    save.awaited.clear();
    endIfIdle(save);
  }

  private void endIfIdle(Save save) {
    if (!save.awaited.isEmpty() || !save.storing.isEmpty() || saves.remove(save.id) == null) {
      return;
    }
    if (save.abandoned) {
      quarantine.add(save.slots);
    } else {
      pool.give(save.slots);
    }
  }

  /** How many are on their way. */
  synchronized int size() {
    return saves.size();
  }

  /** Blocks handed to the store so far. */
  synchronized long storedBlocks() {
    return storedBlocks;
  }
}
