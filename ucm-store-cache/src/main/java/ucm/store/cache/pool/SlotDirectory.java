package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;

/**
 * Says which slot of the buffer a shard has, and gives slots out.
 *
 * <p>Slots may be divided among stripes, 64 at the most; a task remembers those that had no room in the
 * bits of a long. Nothing here blocks for longer than a short critical section, and no lock is held
 * while a {@link SlotWaiter} is called. Thread-safe.
 */
public interface SlotDirectory {

  /** Take no slot of any stripe. */
  long ALL_STRIPES = -1;

  /** Whether a block is here with all its shards, ready to be read. */
  boolean isComplete(BlockIds ids, int i);

  /** Whether some shard of a block was dumped here and is still here. */
  boolean wasDumped(long high, long low);

  /** Whether another process dumps, or has dumped, a shard of a block that is here. */
  default boolean isDumpedElsewhere(long high, long low) {
    return false;
  }

  /**
   * Asks for a shard in order to read it; takes a slot for it if it is not there.
   *
   * @param waiter waits for a slot that is being filled; null when no result is wanted
   * @param index what the waiter calls the shard
   * @param fullStripes bit i set: take no slot of stripe i
   * @return a {@link Reservation}
   */
  long reserveForLoad(
      long high, long low, int shard, @Nullable SlotWaiter waiter, int index, long fullStripes);

  /**
   * Asks for a slot to dump a shard into; see {@link #reserveForLoad}. One that is {@link
   * Reservation#ELSEWHERE} needs no move, and it is not known here whether the next stage will have it.
   */
  long reserveForDump(long high, long low, int shard, long fullStripes);

  /** Asks for a slot that look-ups do not find; the id only spreads such slots over the stripes. */
  long reserveUnnamed(long high, long low, long fullStripes);

  /**
   * Makes a reserved slot readable.
   *
   * @param release whether to give the filler's reference back
   */
  void filled(int slot, boolean release);

  /** Makes reserved slots readable; negative numbers are passed over. */
  void filled(int[] slots, int from, int to, boolean release);

  /**
   * Hides a reserved slot from look-ups; the filler's reference stays, and keeps the slot from
   * being reused, until the filler's I/O has completed.
   */
  void notFilled(int slot, ShardOutcome outcome, @Nullable Throwable cause);

  /** Gives a reference to a slot back. */
  void release(int slot);

  /** Gives references to slots back; negative numbers are passed over. */
  void release(int[] slots, int from, int to);

  /** Forgets a block. */
  void drop(long high, long low);

  /**
   * Forgets a block that the next stage was asked for and does not have, so that a dump takes all its
   * shards. What was loaded proves nothing any more: it came from the next stage and is gone there. Only a dump
   * that is under way is left alone: some of its shards are still to come, or are referenced, as those
   * are that wait to be written.
   *
   * @param whole whether the dump is of all shards of the block: then what another process has begun to
   *     dump and does not go on with at this moment goes too
   */
  void forgetLost(long high, long low, boolean whole);

  /** Whether the bits of a set name all stripes. */
  boolean isFull(long fullStripes);

  /** How many tasks want slots that were not to be had; above 0, the owner is told of room. */
  int wanting();

  /** Says how many tasks want slots; called by one thread. */
  void setWanting(int tasks);

  /** Slots that hold, or are about to hold, a shard. */
  int inUse();

  /** Slots that are being filled, read or written on at this moment. */
  int referenced();
}
