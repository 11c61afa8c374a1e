package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;

/**
 * One part of a pool: some slots and the blocks that hash to it. Slots are called as in the whole pool.
 * Thread-safe.
 */
public interface SlotStripe {

  /** Answer to {@link #filled}: a task of this process waits for one of the slots. */
  int JOINED = 1;

  /** Answer to several calls: a slot can now be taken by others. */
  int ROOM = 2;

  /** Whether all shards of a block are complete here. */
  boolean isComplete(long hash, long high, long low);

  /**
   * Asks for a shard in order to read it.
   *
   * @param waiter waits for a slot that is being filled; null when no result is wanted
   * @param index what the waiter calls the shard
   * @param mayTake whether a slot may be taken if the shard is not there
   * @return a {@link Reservation}
   */
  long reserveForLoad(
      long hash,
      long high,
      long low,
      int shard,
      @Nullable SlotWaiter waiter,
      int index,
      boolean mayTake);

  /**
   * Asks for a slot to dump a shard into. A load of the shard that is under way is displaced: the dump
   * brings the bytes, and what the load finds is for those who wait for it only.
   */
  long reserveForDump(long hash, long high, long low, int shard, boolean mayTake);

  /** Asks for a slot that belongs to no block. */
  long reserveUnnamed();

  /**
   * Says that reserved slots are filled. When a task of this process waits for one of them, all references are
   * kept, and the filler gives them back after it has told the waiters: a slot that went to another block
   * before would have others wait for it.
   *
   * @param slots negative numbers are passed over
   * @param release whether to give the filler's references back
   * @return {@link #JOINED}, or {@link #ROOM}, or 0
   */
  int filled(int[] slots, int from, int to, boolean release);

  /** Says that one reserved slot is filled; see {@link #filled(int[], int, int, boolean)}. */
  int filled(int slot, boolean release);

  /**
   * Says that a reserved slot will not be filled: look-ups do not find it any more. The filler keeps its
   * reference until its I/O has completed.
   */
  void notFilled(int slot);

  /** The waits of this process for a slot that is filled now, or will not be. No wait is added any more. */
  @Nullable SlotWait takeWaits(int slot);

  /** Takes back waits that were taken together; all waiters were told. */
  void giveBack(SlotWait all);

  /** Gives references back; negative numbers are passed over. {@link #ROOM} or 0. */
  int release(int[] slots, int from, int to);

  /** Gives one reference back; {@link #ROOM} or 0. */
  int release(int slot);

  /** Drops a block; shards in use go with their last reference. {@link #ROOM} or 0. */
  int drop(long hash, long high, long low);

  /** See {@link SlotDirectory#forgetLost}; {@link #ROOM} or 0. */
  int forgetLost(long hash, long high, long low, boolean whole);

  /** Slots that this process references. */
  int referenced();
}
