package ucm.server.session;

import java.time.Duration;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.server.staging.StagingSlots;

/**
 * Blocks on their way from the engine to the store. A plan makes a save; each rank fills its slots and
 * says so; then the rank's part is stored, once it is known that what it was computed from was loaded
 * well on all ranks. A block is found when the parts of all ranks are stored. Thread-safe.
 */
final class Saves {

  private static final long LIFE_NANOS = TimeUnit.SECONDS.toNanos(300);

  /** Blocks of a request that a step completes, and their slots. Its state is guarded by the saves. */
  private static final class Save {

    final String requestId;
    final BlockIds ids;
    final int[] slots;

    /** Ends with whether the bytes that the step computed from are right. */
    final CompletableFuture<Boolean> basis;

    final long sinceNanos;

    /** Ranks that have not said yet that their slots are filled. */
    final BitSet awaited = new BitSet();

    /** Ranks whose part is being stored, or waits for that. */
    final BitSet storing = new BitSet();

    /** Whether nothing more of it is to be stored. */
    boolean dropped;

    /** Ranks whose part is neither kept nor refused. */
    final BitSet unsettled = new BitSet();

    /** Ends with its blocks when that is known of all, and the slots are free; null when nobody asks. */
    @Nullable CompletableFuture<BlockIds> settled;

    /** Whether a client that is gone may still be writing to its slots. */
    boolean abandoned;

    Save(
        String requestId,
        BlockIds ids,
        int[] slots,
        CompletableFuture<Boolean> basis,
        long sinceNanos) {
      this.requestId = requestId;
      this.ids = ids;
      this.slots = slots;
      this.basis = basis;
      this.sinceNanos = sinceNanos;
    }
  }

  private final StagingSlots pool;
  private final int ranks;
  private final IntFunction<@Nullable RankTransfers> transfers;
  private final Admission admission;
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
      StagingSlots pool,
      int ranks,
      IntFunction<@Nullable RankTransfers> transfers,
      Admission admission,
      LongSupplier clock) {
    this.pool = pool;
    this.ranks = ranks;
    this.transfers = transfers;
    this.admission = admission;
    this.clock = clock;
  }

  /**
   * Makes a save.
   *
   * @param slots one for each block, taken from the pool
   * @param basis ends with whether what the blocks are computed from is right
   * @return its number; 0 when nothing is stored any more, and the slots are free
   */
  synchronized long begin(
      String requestId, BlockIds ids, int[] slots, CompletableFuture<Boolean> basis) {
    if (admission.isClosed()) {
      pool.give(slots);
      return 0;
    }
    Save save = new Save(requestId, ids, slots, basis, clock.getAsLong());
    save.awaited.set(0, ranks);
    saves.put(++lastId, save);
    return lastId;
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
            save.basis.thenAccept(isRight -> store(id, save, rank, filled && isRight));
      }
    }
  }

  /**
   * Ends with the blocks of a save when they are {@linkplain RankTransfers#whenKept kept} or given up, and their
   * slots free; with none when there is no such save. To be called before its ranks have filled their slots.
   * What follows is to run in a thread of its own.
   */
  synchronized CompletableFuture<BlockIds> settled(long id) {
    Save save = saves.get(id);
    if (save == null) {
      return CompletableFuture.completedFuture(BlockIds.empty());
    }
    if (save.settled == null) {
      save.settled = new CompletableFuture<>();
    }
    return save.settled;
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

  private void store(long id, Save save, int rank, boolean right) {
    RankTransfers rankTransfers = transfers.apply(rank);
    boolean stores;
    boolean isAwaited;
    synchronized (this) {
      stores = right && !save.dropped && rankTransfers != null;
      isAwaited = save.settled != null;
      save.unsettled.set(rank, stores && isAwaited);
    }
    if (stores) {
      rankTransfers.save(
          save.requestId,
          save.ids,
          save.slots,
          () -> ended(id, save, rank, true),
          isAwaited ? () -> settled(id, save, rank) : null);
    } else {
      ended(id, save, rank, false);
    }
  }

  private synchronized void ended(long id, Save save, int rank, boolean stored) {
    save.storing.clear(rank);
    storedBlocks += stored && rank == 0 ? save.ids.size() : 0;
    endIfIdle(id, save);
  }

  private synchronized void settled(long id, Save save, int rank) {
    save.unsettled.clear(rank);
    settleIfIdle(id, save);
  }

  private void settleIfIdle(long id, Save save) {
    CompletableFuture<BlockIds> settled = save.settled;
    if (settled != null && !saves.containsKey(id) && save.unsettled.isEmpty()) {
      settled.complete(save.ids);
    }
  }

  /** Stores nothing of what was planned so far: it may be computed from wrong bytes. */
  synchronized void dropAll() {
    saves.values().forEach(save -> save.dropped = true);
  }

  /** A client is gone, which may still be copying: what is not in its slots yet is given up. */
  synchronized void abandonAll() {
    Map.copyOf(saves).forEach(this::abandon);
  }

  /** Gives saves up that were planned long ago. */
  synchronized void sweep() {
    long now = clock.getAsLong();
    for (Map.Entry<Long, Save> entry : List.copyOf(saves.entrySet())) {
      if (now - entry.getValue().sinceNanos > LIFE_NANOS) {
        abandon(entry.getKey(), entry.getValue());
      }
    }
  }

  private void abandon(long id, Save save) {
    save.dropped = true;
    save.abandoned |= !save.awaited.isEmpty();
    save.awaited.clear();
    endIfIdle(id, save);
  }

  private void endIfIdle(long id, Save save) {
    if (!save.awaited.isEmpty() || !save.storing.isEmpty() || saves.remove(id) == null) {
      return;
    }
    if (save.abandoned) {
      pool.giveLater(save.slots);
    } else {
      pool.give(save.slots);
    }
    settleIfIdle(id, save);
    notifyAll();
  }

  /** Waits until there are none; false when there are some after that time. */
  synchronized boolean awaitNone(Duration most) throws InterruptedException {
    long end = System.nanoTime() + most.toNanos();
    for (long left = most.toNanos(); !saves.isEmpty(); left = end - System.nanoTime()) {
      if (left <= 0) {
        return false;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return true;
  }

  synchronized int size() {
    return saves.size();
  }

  /** Blocks handed to the store so far. */
  synchronized long storedBlocks() {
    return storedBlocks;
  }
}
