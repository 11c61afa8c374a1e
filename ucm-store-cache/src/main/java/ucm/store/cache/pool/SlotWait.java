package ucm.store.cache.pool;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A wait of this process for a slot to be filled; holds a reference. Belongs to {@link SlotWaits}
 * until it is taken, and again when it was given back for reuse.
 */
public final class SlotWait {

  private @Nullable SlotWaiter waiter;
  private int index;
  @Nullable SlotWait next;

  /**
   * Begins to wait.
   *
   * @param index what the waiter calls the shard
   * @param next another wait for the same slot
   */
  void set(@Nullable SlotWaiter waiter, int index, @Nullable SlotWait next) {
    this.waiter = waiter;
    this.index = index;
    this.next = next;
  }

  /** Told of the result. */
  public SlotWaiter waiter() {
    return Objects.requireNonNull(waiter, "no waiter: it was given back");
  }

  /** What the waiter calls the shard. */
  public int index() {
    return index;
  }

  /** Another wait for the same slot, or null. */
  @Nullable
  public SlotWait next() {
    return next;
  }
}
