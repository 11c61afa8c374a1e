package ucm.store.cache.pool;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Somebody here who waits for a slot to be filled; holds a reference. Belongs to {@link JoinedSlots}
 * until it is taken, and again when it was given back; then it stands for somebody else.
 */
public final class Joined {

  private @Nullable SlotWaiter waiter;
  private int index;
  @Nullable public Joined next;

  /** The slot, once it was filled, or not, by another process. */
  public int slot;

  /** Whether another process has filled it. */
  public boolean isFilled;

  /**
   * Stands for somebody from now on.
   *
   * @param index what the waiter calls the shard
   * @param next who else waits for the same slot
   */
  void set(@Nullable SlotWaiter waiter, int index, @Nullable Joined next) {
    this.waiter = waiter;
    this.index = index;
    this.next = next;
  }

  /** Who waits. */
  public SlotWaiter waiter() {
    return Objects.requireNonNull(waiter, "nobody waits: it was given back");
  }

  /** What the waiter calls the shard. */
  public int index() {
    return index;
  }

  /** Who else waits for the same slot. */
  @Nullable
  public Joined next() {
    return next;
  }
}
