package ucm.store.file.health;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * What one thread is doing on a volume right now, so that another thread can see that it takes too long.
 * Used over and over by its thread; beginning and ending take no lock, allocate nothing and do not read
 * the clock.
 */
public final class VolumeOperation {

  /** What is done. */
  public enum Kind {
    /** A probe. */
    PROBE,
    /** Shards are moved. */
    TRANSFER,
    /** Blocks are looked up. */
    LOOKUP
  }

  private static final long IDLE = 0;
  private static final long LATE = Long.MIN_VALUE;
  private static final int VOLUME_BITS = 16;
  private static final long VOLUME_MASK = (1L << VOLUME_BITS) - 1;

  final Kind kind;

  // The number of the step, then the volume plus one; the sign says that it was found late.
  private final AtomicLong mark = new AtomicLong();

  // Only the owner's.
  private long steps;

  // Only the timeout scheduler's.
  private long seenMark;
  private long seenNanos;

  VolumeOperation(Kind kind) {
    this.kind = kind;
  }

  /** Begins; what was begun before has ended. */
  void begin(int volume) {
    mark.set((++steps << VOLUME_BITS & Long.MAX_VALUE) | (volume + 1));
  }

  /** Ends; false when it was found late, or nothing was begun. */
  boolean end() {
    return mark.getAndSet(IDLE) > IDLE;
  }

  /** Whether something is begun and not ended, as far as its watcher must care. */
  boolean isUnderWay() {
    return mark.get() > IDLE;
  }

  /** The volume of what is begun and not ended, late or not; -1 when there is nothing. */
  int volume() {
    return (int) (mark.get() & VOLUME_MASK) - 1;
  }

  /**
   * Finds out whether it takes too long; says so once. Called by one thread at a time.
   *
   * @return the volume, or -1 when all is well
   */
  int lateVolume(LongSupplier clock, long timeoutNanos) {
    long current = mark.get();
    if (current <= IDLE) {
      return -1;
    }
    // Only now: a time read before may lie long before the beginning, when this thread was held.
    long now = clock.getAsLong();
    if (current != seenMark) {
      seenMark = current;
      seenNanos = now;
      return -1;
    }
    boolean late = now - seenNanos >= timeoutNanos && mark.compareAndSet(current, current | LATE);
    return late ? (int) (current & VOLUME_MASK) - 1 : -1;
  }
}
