package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;

/**
 * Who waits for which slot of one stripe. Those who waited are taken, told one by one, and given back
 * together, for those who come next. Guarded by the stripe's lock; what was taken is the taker's, who
 * tells without that lock, until it is given back. A taker who fails on the way may leave it to the
 * garbage collector.
 */
public final class JoinedSlots {

  private static final int MOST_SPARE = 1024;

  private final @Nullable Joined[] bySlot;
  private @Nullable Joined spare;
  private int spares;

  /** Nobody waits. */
  public JoinedSlots(int slots) {
    bySlot = new Joined[slots];
  }

  /** Has somebody wait for a slot. */
  public void add(int slot, SlotWaiter waiter, int index) {
    Joined one = spare;
    if (one == null) {
      one = new Joined();
    } else {
      spare = one.next;
      spares--;
    }
    one.set(waiter, index, bySlot[slot]);
    bySlot[slot] = one;
  }

  /** Whether somebody waits for a slot. */
  public boolean has(int slot) {
    return bySlot[slot] != null;
  }

  /** Those who wait for a slot, and now do no more. */
  @Nullable
  public Joined take(int slot) {
    Joined all = bySlot[slot];
    bySlot[slot] = null;
    return all;
  }

  /** Takes back those who were taken together, all of whom were told. */
  public void giveBack(Joined all) {
    Joined one = all;
    while (one != null && spares < MOST_SPARE) {
      Joined next = one.next;
      one.set(null, 0, spare);
      spare = one;
      spares++;
      one = next;
    }
  }
}
