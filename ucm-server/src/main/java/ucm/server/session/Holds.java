package ucm.server.session;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.server.session.Hold.State;
import ucm.server.staging.SlotPool;

/**
 * What was promised to the requests of an engine. A look-up makes a hold, a plan takes it, and it ends
 * when all ranks have copied it. One that is not taken ends when its request is looked up again or
 * forgotten, or after a time. Thread-safe.
 */
final class Holds {

  private static final long LIFE_NANOS = TimeUnit.SECONDS.toNanos(300);

  private final SlotPool pool;
  private final Quarantine quarantine;
  private final int ranks;
  private final LongSupplier clock;
  // Guarded by this.
  private final Map<Long, Hold> holds = new HashMap<>();
  private long lastId;

  /**
   * Holds nothing.
   *
   * @param ranks how many copy each hold
   */
  Holds(SlotPool pool, Quarantine quarantine, int ranks, LongSupplier clock) {
    this.pool = pool;
    this.quarantine = quarantine;
    this.ranks = ranks;
    this.clock = clock;
  }

  /** Makes a hold over slots that are being filled. */
  synchronized Hold begin(int handle, int firstBlock, int[] slots) {
    Hold hold = new Hold(++lastId, handle, firstBlock, slots, clock.getAsLong());
    holds.put(hold.id, hold);
    return hold;
  }

  /**
   * The slots are filled.
   *
   * @param there how many of the first blocks are there; the other slots are free again
   * @return the slots that are held, in the order of the blocks
   */
  synchronized int[] filled(Hold hold, int there) {
    pool.give(hold.keep(hold.cancelled ? 0 : there));
    if (hold.slots.length == 0) {
      end(hold);
    } else {
      hold.state = State.HELD;
    }
    return hold.slots;
  }

  /** Gives a hold up that was not taken. */
  synchronized void cancel(Hold hold) {
    hold.cancelled = true;
    if (hold.state == State.HELD) {
      end(hold);
    }
  }

  /**
   * A plan loads the first blocks of a hold.
   *
   * @return null when there is no such hold, or no longer
   */
  synchronized @Nullable Hold take(long id, int blocks) {
    Hold hold = holds.get(id);
    if (hold == null || hold.state != State.HELD) {
      return null;
    }
    hold.state = State.TAKEN;
    pool.give(hold.keep(Math.min(blocks, hold.slots.length)));
    if (hold.slots.length == 0) {
      end(hold);
    }
    return hold;
  }

  /**
   * A rank has copied holds, or could not. The message may come before that of the plan.
   *
   * @param well whether it could
   */
  void copied(int rank, long[] ids, boolean well) {
    List<Hold> done = new ArrayList<>();
    List<Hold> failed = new ArrayList<>();
    synchronized (this) {
      for (long id : ids) {
        Hold hold = holds.get(id);
        if (hold == null || hold.state == State.FILLING) {
          continue;
        }
        if (!well) {
          failed.add(hold);
        }
        hold.ranks.set(rank);
        if (hold.ranks.cardinality() == ranks) {
          end(hold);
          done.add(hold);
        }
      }
    }
    // Saves wait for these, and begin without the lock.
    failed.forEach(hold -> hold.copied.complete(false));
    done.forEach(hold -> hold.copied.complete(true));
  }

  /** Ends when all that was taken so far has been copied, with whether all of it could be. */
  CompletableFuture<Boolean> allCopied() {
    List<CompletableFuture<Boolean>> open;
    synchronized (this) {
      open =
          holds.values().stream()
              .filter(hold -> hold.state == State.TAKEN)
              .map(hold -> hold.copied)
              .toList();
    }
    CompletableFuture<Boolean> all = CompletableFuture.completedFuture(true);
    for (CompletableFuture<Boolean> one : open) {
      all = all.thenCombine(one, Boolean::logicalAnd);
    }
    return all;
  }

  /** A client is gone, which may still be copying: all holds end. */
  void abandonAll() {
    List<Hold> ended = new ArrayList<>();
    synchronized (this) {
      for (Hold hold : List.copyOf(holds.values())) {
        hold.cancelled = true;
        if (hold.state != State.FILLING) {
          ended.add(hold);
          quarantine(hold);
        }
      }
    }
    ended.forEach(hold -> hold.copied.complete(false));
  }

  /** Ends holds that were made long ago. */
  void sweep() {
    List<Hold> ended = new ArrayList<>();
    synchronized (this) {
      long now = clock.getAsLong();
      for (Hold hold : List.copyOf(holds.values())) {
        if (hold.state != State.FILLING && now - hold.sinceNanos > LIFE_NANOS) {
          ended.add(hold);
          quarantine(hold);
        }
      }
    }
    ended.forEach(hold -> hold.copied.complete(false));
  }

  /** How many there are. */
  synchronized int size() {
    return holds.size();
  }

  private void quarantine(Hold hold) {
    holds.remove(hold.id);
    hold.state = State.ENDED;
    quarantine.add(hold.slots);
  }

  private void end(Hold hold) {
    holds.remove(hold.id);
    hold.state = State.ENDED;
    pool.give(hold.slots);
  }
}
