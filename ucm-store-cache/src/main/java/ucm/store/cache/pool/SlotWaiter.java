package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;
import ucm.api.ShardOutcome;

/**
 * Waits for a slot that another task fills. Exactly one of these is called, on the filler's thread,
 * without any lock held.
 */
public interface SlotWaiter {

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
