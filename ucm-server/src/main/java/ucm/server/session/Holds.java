package ucm.server.session;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What was promised to the requests of an engine. A look-up makes a hold, a plan takes it, and it ends
 * when all ranks have copied it. One that is not taken ends when its request is looked up again or
 * forgotten, or after a time. Thread-safe.
 */
final class Holds {

  private static final long LIFE_NANOS = TimeUnit.SECONDS.toNanos(300);

  /** Slots with blocks that a request may load. Its state is guarded by the holds. */
  static final class Hold {

    /** What becomes of it, in this order. */
    private enum State {
      /** Its blocks are on their way from the store. */
      FILLING,
      /** It was promised. */
      HELD,
      /** The engine loads it. */
      TAKEN
    }

    final long id;
    final int handle;

    /** Which block of the request is in the first slot. */
    final int firstBlock;

    private final long sinceNanos;

    /** Ends with whether all ranks have copied what was taken. */
    private final CompletableFuture<Boolean> copied = new CompletableFuture<>();

    private final BitSet ranks = new BitSet();
    private int[] slots = {};
    private State state = State.FILLING;
    private boolean cancelled;

    private Hold(long id, int handle, int firstBlock, long sinceNanos) {
      this.id = id;
      this.handle = handle;
      this.firstBlock = firstBlock;
      this.sinceNanos = sinceNanos;
    }
  }

  private final LoadSlots pool;
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
  Holds(LoadSlots pool, int ranks, LongSupplier clock) {
    this.pool = pool;
    this.ranks = ranks;
    this.clock = clock;
  }

  /** Makes a hold of blocks that are on their way; {@link #filled} must follow. */
  synchronized Hold begin(int handle, int firstBlock) {
    Hold hold = new Hold(++lastId, handle, firstBlock, clock.getAsLong());
    holds.put(hold.id, hold);
    return hold;
  }

  /**
   * The first blocks are in slots, which are the hold's from now on.
   *
   * @return the slots that are held; none when it was given up meanwhile
   */
  synchronized int[] filled(Hold hold, int[] slots) {
    hold.state = Hold.State.HELD;
    hold.slots = slots;
    keep(hold, hold.cancelled ? 0 : slots.length);
    return hold.slots;
  }

  /** Gives a hold up that was not taken. */
  synchronized void cancel(Hold hold) {
    hold.cancelled = true;
    if (hold.state == Hold.State.HELD && holds.containsKey(hold.id)) {
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
    if (hold == null || hold.state != Hold.State.HELD) {
      return null;
    }
    hold.state = Hold.State.TAKEN;
    keep(hold, Math.min(blocks, hold.slots.length));
    return hold;
  }

  /** Frees all slots but the first; a hold without slots has ended. */
  private void keep(Hold hold, int count) {
    pool.give(Arrays.copyOfRange(hold.slots, count, hold.slots.length));
    hold.slots = Arrays.copyOf(hold.slots, count);
    if (count == 0) {
      end(hold);
    }
  }

  private void end(Hold hold) {
    holds.remove(hold.id);
    pool.give(hold.slots);
  }

  /**
   * A rank has copied holds, or could not. The message may come before that of the plan.
   *
   * @param well whether it could
   */
  void copied(int rank, long[] ids, boolean well) {
    List<Hold> done = new ArrayList<>();
    synchronized (this) {
      for (long id : ids) {
        Hold hold = holds.get(id);
        if (hold == null || hold.state == Hold.State.FILLING) {
          continue;
        }
        hold.ranks.set(rank);
        boolean last = hold.ranks.cardinality() == ranks;
        if (last) {
          end(hold);
        }
        if (last || !well) {
          done.add(hold);
        }
      }
    }
    // Saves wait for these, and begin without the lock.
    done.forEach(hold -> hold.copied.complete(well));
  }

  /** Ends when all that was taken so far has been copied, with whether all of it could be. */
  CompletableFuture<Boolean> allCopied() {
    CompletableFuture<Boolean> all = CompletableFuture.completedFuture(true);
    synchronized (this) {
      for (Hold hold : holds.values()) {
        if (hold.state == Hold.State.TAKEN) {
          all = all.thenCombine(hold.copied, Boolean::logicalAnd);
        }
      }
    }
    return all;
  }

  /** A client is gone, which may still be copying: all holds end. */
  void abandonAll() {
    abandon(hold -> true);
  }

  /** Ends holds that were made long ago. */
  void sweep() {
    long now = clock.getAsLong();
    abandon(hold -> hold.state != Hold.State.FILLING && now - hold.sinceNanos > LIFE_NANOS);
  }

  private void abandon(Predicate<Hold> which) {
    List<Hold> ended;
    synchronized (this) {
      ended = holds.values().stream().filter(which).toList();
      for (Hold hold : ended) {
        hold.cancelled = true;
        if (hold.state != Hold.State.FILLING) {
          holds.remove(hold.id);
          pool.giveLater(hold.slots);
        }
      }
    }
    ended.forEach(hold -> hold.copied.complete(false));
  }

  synchronized int size() {
    return holds.size();
  }
}
