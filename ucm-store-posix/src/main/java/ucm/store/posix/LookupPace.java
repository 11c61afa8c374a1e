package ucm.store.posix;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How fast the file system answers look-ups, and from that, who should ask it: the caller's own
 * thread while it is fast, else {@link LookupThreads}, which ask for several blocks at a time and can
 * be left behind when they hang.
 *
 * <p>Until it is known, the file system counts as slow, so that one that hangs from the start holds
 * nobody. One that begins to hang later can hold those callers that are just asking; whoever comes
 * after them sees that and uses the threads. Thread-safe.
 */
final class LookupPace {

  /** From here on, handing a look-up to other threads costs less than it saves. */
  static final long SLOW_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  /** A caller that has not come back for so long probably hangs. */
  static final long HANGING_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final long NOBODY = Long.MIN_VALUE;
  // The average follows the last samples: each counts for one or two parts in this many.
  private static final int PARTS = 8;
  // More than this is taken for this, as a thread that had to wait for a processor is no slow disk.
  private static final long MOST_NANOS = 4 * SLOW_NANOS;

  // Races lose a sample, which does not matter.
  private volatile long averageNanos = 2 * SLOW_NANOS;
  // When one of the callers that ask themselves was last seen to get on.
  private final AtomicLong seen = new AtomicLong(NOBODY);

  /** Notes accesses that were made one after the other. */
  void took(long nanos, int accesses) {
    long average = averageNanos;
    long sample = Math.min(nanos / accesses, MOST_NANOS);
    averageNanos = average + (sample - average) * Math.min(accesses, 2) / PARTS;
  }

  /** Whether accesses should go through the threads. */
  boolean isSlow() {
    return averageNanos >= SLOW_NANOS;
  }

  /** Whether a caller should ask through the threads. */
  boolean isSlow(long now) {
    long since = seen.get();
    return isSlow() || (since != NOBODY && now - since >= HANGING_NANOS);
  }

  /** Begins to ask; true when this caller is now the one who is watched. */
  boolean enter(long now) {
    return seen.get() == NOBODY && seen.compareAndSet(NOBODY, now);
  }

  /** The watched caller gets on. */
  void step(long now) {
    seen.set(now);
  }

  /** The watched caller has done. */
  void leave() {
    seen.set(NOBODY);
  }
}
