package ucm.store.file.volume;

import java.util.function.LongSupplier;

/**
 * Finds out that this process did not run for a while, as it was stopped or its machine paused: then it looks later
 * than it meant to, and what seems to take too long only had no chance to end. For one thread.
 */
final class Standstill {

  private final long longestNanos;
  private final LongSupplier clock;
  private long lookedNanos;

  /**
   * Looks for the first time.
   *
   * @param longestNanos the most between two looks of a process that runs
   * @param clock real time, in nanoseconds
   */
  Standstill(long longestNanos, LongSupplier clock) {
    this.longestNanos = longestNanos;
    this.clock = clock;
    lookedNanos = clock.getAsLong();
  }

  /** Looks again; returns whether the last look is too long ago. */
  boolean hasBeen() {
    long before = lookedNanos;
    lookedNanos = clock.getAsLong();
    return lookedNanos - before > longestNanos;
  }
}
