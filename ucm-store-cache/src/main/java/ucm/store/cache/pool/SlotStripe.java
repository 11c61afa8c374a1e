package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;

/**
 * One part of a pool: some slots and the blocks that hash to it. Slots are called as in the whole pool.
 * Thread-safe.
 */
public interface SlotStripe {

  /** Answer to {@link #filled}: somebody here waits for one of the slots. */
  int JOINED = 1;

  /** Answer to several calls: a slot can now be taken by others. */
  int ROOM = 2;

  /** Whether all shards of a block are complete here. */
  boolean isComplete(long hash, long high, long low);

  /**
   * Asks for a shard in order to read it.
   *
   * @param waiter joins whoever fills the slot; null when nobody wants to know
   * @param index what the waiter calls the shard
   * @param mayTake whether a slot may be taken if the shard is not there
   * @return a {@link Reservation}
   */
  long claimForLoad(
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
  long claimForDump(long hash, long high, long low, int shard, boolean mayTake);

  /** Asks for a slot that belongs to no block. */
  long claimUnnamed();

  /**
   * Says that claimed slots are filled. When somebody here waits for one of them, all references are
   * kept, and the filler gives them back after it has told who waits: a slot that went to another block
   * before would have others wait for it.
   *
   * @param slots negative numbers are passed over
   * @param release whether to give the filler's references back
   * @return {@link #JOINED}, or {@link #ROOM}, or 0
   */
  int filled(int[] slots, int from, int to, boolean release);

  /** Says that one claimed slot is filled; see {@link #filled(int[], int, int, boolean)}. */
  int filled(int slot, boolean release);

  /**
   * Says that a claimed slot will not be filled: nobody finds it any more. The filler keeps its
   * reference until its I/O is terminal.
   */
  void notFilled(int slot);

  /** Those here who waited for a slot that is filled now, or will not be. Nobody joins it any more. */
  @Nullable Joined takeJoined(int slot);

  /** Takes back those who were taken together, all of whom were told. */
  void giveBack(Joined all);

  /** Gives references back; negative numbers are passed over. {@link #ROOM} or 0. */
  int release(int[] slots, int from, int to);

  /** Gives one reference back; {@link #ROOM} or 0. */
  int release(int slot);

  /** Drops a block; shards in use go with their last reference. {@link #ROOM} or 0. */
  int drop(long hash, long high, long low);

  /** See {@link SlotDirectory#forgetLost}; {@link #ROOM} or 0. */
  int forgetLost(long hash, long high, long low, boolean whole);

  /** Slots that somebody here references. */
  int referenced();
}
