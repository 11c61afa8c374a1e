package ucm.store.cache.pool;

import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreMetrics;
import ucm.store.cache.config.CachePolicy;

/**
 * Says which slot of the pool a shard has, and gives slots out.
 *
 * <p>Nothing here blocks for longer than a short critical section, and no lock is held while a {@link
 * Waiter} is called. Thread-safe.
 */
public final class SlotPool extends SlotStates {

  /**
   * Waits for a slot that another task fills. Exactly one of these is called, on the filler's thread,
   * without any lock held.
   */
  public interface Waiter {

    /**
     * The slot holds the shard.
     *
     * @param index the number given when the wait began
     * @param slot referenced; the waiter releases it
     */
    void filled(int index, int slot);

    /**
     * The slot will not be filled. It is not referenced any more.
     *
     * @param cause why, or null when the shard is merely missing
     */
    void notFilled(int index, ShardOutcome outcome, @Nullable Throwable cause);
  }

  /** What asking the pool for the slot of a shard gave: a kind and a number, packed into a long. */
  public static final class Reservation {

    /** The shard is in this slot, or a dump brings it; for a load it is complete and referenced. */
    public static final int HIT = 0;

    /** The slot is the caller's to fill, and referenced. */
    public static final int RESERVED = 1;

    /** It is being filled already, and the waiter is told; only for a load. */
    public static final int FILLING = 2;

    /** Not there, and no slot was to be had. */
    public static final int NO_ROOM = 3;

    private Reservation() {}

    static long of(int kind, int number) {
      return ((long) kind << 32) | (number & 0xffffffffL);
    }

    public static int kind(long reservation) {
      return (int) (reservation >>> 32);
    }

    /** The slot, where there is one. */
    public static int number(long reservation) {
      return (int) reservation;
    }
  }

  private final Consumer<int[]> giveBack;
  // Held while memory is given back, so that none of it is used meanwhile.
  private final Object limiting = new Object();
  // Those who want slots that were not to be had.
  private final List<Runnable> wanting = new CopyOnWriteArrayList<>();

  /**
   * A pool of free slots.
   *
   * @param slots how many
   * @param shards shards in a block
   * @param policy which blocks are evicted first
   * @param evictions counts the shards evicted
   */
  public SlotPool(int slots, int shards, CachePolicy policy, StoreMetrics.Counter evictions) {
    this(slots, shards, policy, evictions, _ -> {});
  }

  /**
   * The same with slots whose memory is given back when there is a {@linkplain #limit limit}.
   *
   * @param giveBack gives the memory of slots back, on any thread; must not block
   */
  public SlotPool(
      int slots,
      int shards,
      CachePolicy policy,
      StoreMetrics.Counter evictions,
      Consumer<int[]> giveBack) {
    super(slots, shards, policy, evictions);
    this.giveBack = giveBack;
  }

  /** Which of some blocks are not here with all their shards. */
  public BitSet absent(BlockIds ids) {
    BitSet absent = new BitSet(ids.size());
    for (int i = 0; i < ids.size(); i++) {
      absent.set(i, !isComplete(ids, i));
    }
    return absent;
  }

  /**
   * Makes a reserved slot readable.
   *
   * @param release whether to give the filler's reference back
   */
  public void filled(int slot, boolean release) {
    int answer = fill(slot, release);
    if (answer == JOINED) {
      tellFilled(slot);
      answer = release ? unreference(slot) : 0;
    }
    tellRoom(answer);
  }

  /** Makes reserved slots readable; negative numbers are passed over. */
  public void filled(int[] run, int from, int to, boolean release) {
    int answer = fill(run, from, to, release);
    if (answer == JOINED) {
      for (int i = from; i < to; i++) {
        if (run[i] >= 0) {
          tellFilled(run[i]);
        }
      }
      answer = release ? unreference(run, from, to) : 0;
    }
    tellRoom(answer);
  }

  /**
   * Hides a reserved slot from look-ups; the filler's reference stays, and keeps the slot from
   * being reused, until the filler's I/O has completed.
   */
  public void notFilled(int slot, ShardOutcome outcome, @Nullable Throwable cause) {
    hide(slot);
    for (Wait joined = takeWaits(slot); joined != null; joined = joined.next()) {
      release(slot);
      joined.waiter().notFilled(joined.index(), outcome, cause);
    }
  }

  /** Gives a reference to a slot back. */
  public void release(int slot) {
    tellRoom(unreference(slot));
  }

  /** Gives references to slots back; negative numbers are passed over. */
  public void release(int[] run, int from, int to) {
    tellRoom(unreference(run, from, to));
  }

  /**
   * Ends what {@link #beginFetch} began: lends the first blocks that were fetched.
   *
   * @param fetched the slot of each shard, with a reference; negative where there is none
   * @return where they begin; all other references are given back
   */
  public int[] lendFetched(int[] fetched) {
    int[] lent = new int[countFetched(fetched)];
    Arrays.setAll(lent, block -> fetched[block * shards]);
    release(fetched, lent.length * shards, fetched.length);
    return lent;
  }

  /** Gives the first slots of blocks back that were {@linkplain #lend lent}. */
  public void giveBack(int[] lent) {
    tellRoom(takeBack(lent));
  }

  /** Forgets a block; shards in use go with their last reference. */
  public void drop(long high, long low) {
    tellRoom(dropBlock(high, low, false));
  }

  /** Forgets all blocks, as {@link #drop} does one. */
  public void dropAll() {
    tellRoom(dropEach(_ -> true));
  }

  /**
   * Forgets a block that the next stage was asked for and does not have, so that a dump takes all its
   * shards. What was loaded proves nothing any more: it came from the next stage and is gone there. Only a dump
   * that is under way is left alone: some of its shards are still to come, or are referenced, as those
   * are that wait to be written.
   */
  public void forgetLost(long high, long low) {
    tellRoom(dropBlock(high, low, true));
  }

  /**
   * Forgets the blocks of which only some shards were dumped: the store that began them has left, so none
   * takes what is here for a part of what its next stage has.
   */
  public void dropUnfinished() {
    tellRoom(dropEach(this::isPartial));
  }

  /** Whether a task wants slots that were not to be had. */
  public boolean isWanted() {
    return !wanting.isEmpty();
  }

  /**
   * Has a store told when slots come free, or not any more.
   *
   * @param whenRoom is run on any thread; must not block
   */
  public void setWanting(Runnable whenRoom, boolean wants) {
    if (!wants) {
      wanting.remove(whenRoom);
    } else if (!wanting.contains(whenRoom)) {
      wanting.add(whenRoom);
    }
  }

  private void tellRoom(int answer) {
    if ((answer & SURPLUS) != 0) {
      synchronized (limiting) {
        giveBack.accept(takeSurplus());
      }
    }
    if ((answer & ROOM) != 0) {
      for (Runnable whenRoom : wanting) {
        whenRoom.run();
      }
    }
  }

  /** Has no more slots in use than some, as soon as those that are in use now let it. */
  public void limit(int most) {
    int answer;
    synchronized (limiting) {
      answer = setLimit(most);
    }
    tellRoom(answer);
  }

  private void tellFilled(int slot) {
    for (Wait joined = takeWaits(slot); joined != null; joined = joined.next()) {
      joined.waiter().filled(joined.index(), slot);
    }
  }
}
