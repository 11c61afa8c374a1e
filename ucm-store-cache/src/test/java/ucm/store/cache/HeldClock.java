package ucm.store.cache;

import java.util.function.LongSupplier;

/** Stands still until it is let go, and is the real time from then on: what comes before is not late. */
final class HeldClock implements LongSupplier {

  private final long heldNanos = System.nanoTime();
  private volatile long behindNanos;
  private volatile boolean runs;

  /** Lets it run, from where it stood. */
  void letGo() {
    behindNanos = System.nanoTime() - heldNanos;
    runs = true;
  }

  @Override
  public long getAsLong() {
    return runs ? System.nanoTime() - behindNanos : heldNanos;
  }
}
