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
   * @param waiter joins whoever fills the slot; null when nobody wants to know
   * @param index what the waiter calls the shard
   * @param fullStripes bit i set: take no slot of stripe i
   * @return a {@link Reservation}
   */
  long claimForLoad(
      long high, long low, int shard, @Nullable SlotWaiter waiter, int index, long fullStripes);

  /**
   * Asks for a slot to dump a shard into; see {@link #claimForLoad}. One that is {@link
   * Reservation#ELSEWHERE} needs no move, and it is not known here whether the stage behind will have it.
   */
  long claimForDump(long high, long low, int shard, long fullStripes);

  /** Asks for a slot that nobody will find; the id only spreads such slots over the stripes. */
  long claimUnnamed(long high, long low, long fullStripes);

  /**
   * Makes a claimed slot readable for everybody.
   *
   * @param release whether to give the filler's reference back
   */
  void filled(int slot, boolean release);

  /** Makes claimed slots readable for everybody; negative numbers are passed over. */
  void filled(int[] slots, int from, int to, boolean release);

  /**
   * Makes a claimed slot one that nobody finds; the filler's reference stays, and keeps the slot from
   * being used anew, until the filler's I/O is terminal.
   */
  void notFilled(int slot, ShardOutcome outcome, @Nullable Throwable cause);

  /** Gives a reference to a slot back. */
  void release(int slot);

  /** Gives references to slots back; negative numbers are passed over. */
  void release(int[] slots, int from, int to);

  /** Forgets a block. */
  void drop(long high, long low);

  /**
   * Forgets a block that the stage behind was asked for and does not have, so that a dump takes all its
   * shards. What was loaded proves nothing any more: it came from behind and is gone there. Only a dump
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

  /** Slots that somebody fills, reads or writes on at this moment. */
  int referenced();
}
