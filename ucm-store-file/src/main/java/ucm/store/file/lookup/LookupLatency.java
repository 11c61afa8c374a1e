package ucm.store.file.lookup;

import java.util.concurrent.TimeUnit;

/**
 * How fast the file system answers look-ups, and from that, how many threads should ask it: while it
 * is fast, no more than there are processors, each for many blocks; else one for each block, as they
 * mostly wait. Until it is known, the file system counts as slow. Thread-safe.
 */
final class LookupLatency {

  /** From here on, an answer is worth a thread of its own. */
  static final long SLOW_NANOS = TimeUnit.MICROSECONDS.toNanos(100);

  // Blocks that make it worth while to wake a thread, when the file system is fast.
  private static final int SHARE = 128;
  private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();
  // The average follows the last samples: each counts for one or two parts in this many.
  private static final int PARTS = 8;
  // More than this is taken for this, as a thread that had to wait for a processor is no slow disk.
  private static final long MOST_NANOS = 4 * SLOW_NANOS;

  // Races lose a sample, which does not matter.
  private volatile long averageNanos = 2 * SLOW_NANOS;

  /** Notes accesses that were made one after the other. */
  void took(long nanos, int accesses) {
    long average = averageNanos;
    long sample = Math.min(nanos / accesses, MOST_NANOS);
    averageNanos = average + (sample - average) * Math.min(accesses, 2) / PARTS;
  }

  /** Whether an answer takes long. */
  boolean isSlow() {
    return averageNanos >= SLOW_NANOS;
  }

  /** How many threads should ask for so many blocks, 1 or more. */
  int threadsFor(int blocks) {
    return isSlow() ? blocks : Math.min(PROCESSORS, (blocks + SHARE - 1) / SHARE);
  }
}
