package ucm.store.cache.pool;

/** What asking the pool for the slot of a shard gave: a kind and a number, packed into a long. */
public final class Reservation {

  /** The shard is complete in this slot, which is now referenced. */
  public static final int HIT = 0;

  /** The slot is the caller's to fill, and referenced. */
  public static final int RESERVED = 1;

  /** It is being filled already; for a load, the waiter is told. */
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
