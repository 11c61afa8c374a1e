package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;

/**
 * The waits for the slots of one stripe. Those of a slot are taken, told one by one, and given back
 * together for reuse. Guarded by the stripe's lock; what was taken is the taker's, who tells without
 * that lock, until it is given back. A taker that fails may leave it to the garbage collector.
 */
public final class SlotWaits {

  private static final int MAX_POOLED = 1024;

  private final @Nullable SlotWait[] bySlot;
  private @Nullable SlotWait spare;
  private int pooled;

  /** No waits. */
  public SlotWaits(int slots) {
    bySlot = new SlotWait[slots];
  }

  /** Adds a wait for a slot. */
  public void add(int slot, SlotWaiter waiter, int index) {
    SlotWait one = spare;
    if (one == null) {
      one = new SlotWait();
    } else {
      spare = one.next;
      pooled--;
    }
    one.set(waiter, index, bySlot[slot]);
    bySlot[slot] = one;
  }

  /** Whether there is a wait for a slot. */
  public boolean has(int slot) {
    return bySlot[slot] != null;
  }

  /** Removes and returns the waits for a slot. */
  @Nullable
  public SlotWait take(int slot) {
    SlotWait all = bySlot[slot];
    bySlot[slot] = null;
    return all;
  }

  /** Takes back waits that were taken together; all waiters were told. */
  public void giveBack(SlotWait all) {
    SlotWait one = all;
    while (one != null && pooled < MAX_POOLED) {
      SlotWait next = one.next;
      one.set(null, 0, spare);
      spare = one;
      pooled++;
      one = next;
    }
  }
}
