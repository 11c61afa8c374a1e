package ucm.platform.thread;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * How many threads may be at work: enough that the processors are busy although some threads wait for a
 * device. Threads that compute and copy all the time need one per processor, more would only push each
 * other out of the caches; threads that wait for nine tenths of their time need ten (Goetz et al.,
 * Java Concurrency in Practice, 8.2). To that come threads that work in place of held ones.
 *
 * <p>Thread-safe; two samples at once may cost one of them, which does not matter.
 */
final class ThreadDemand {

  // The average follows the last samples: each counts for one part in this many.
  private static final int PARTS = 4;

  private final int processors;
  private final int usualMost;
  private final AtomicInteger relief = new AtomicInteger();
  private volatile double busyShare = 1;
  private volatile int wanted;
  private volatile int compensating;

  /**
   * Begins with one thread per processor.
   *
   * @param usualMost threads at the most, compensating ones aside
   */
  ThreadDemand(int processors, int usualMost) {
    this.processors = processors;
    this.usualMost = usualMost;
    this.wanted = Math.min(processors, usualMost);
  }

  /**
   * Takes in how a thread spent some time at work.
   *
   * @param nanos of that time
   * @param processorNanos how much of it on a processor
   * @param hasWaited whether it gave its processor up by itself; if not, it was never held by a device
   */
  void worked(long nanos, long processorNanos, boolean hasWaited) {
    double share = hasWaited ? Math.clamp((double) processorNanos / nanos, 0, 1) : 1;
    double before = busyShare;
    double average = before + (share - before) / PARTS;
    busyShare = average;
    // Rounded down, so that the odd short wait adds no thread.
    wanted = (int) Math.min(usualMost, processors / Math.max(average, 1e-6));
  }

  /** No thread gets on: one more may work. */
  void relieve() {
    relief.incrementAndGet();
  }

  /** A thread that did not get on does again. */
  void giveBack() {
    int relieved = relief.get();
    if (relieved > 0) {
      relief.compareAndSet(relieved, relieved - 1);
    }
  }

  /** Lets so many more work than usual, and be there at the most. */
  void compensate(int count) {
    compensating = count;
  }

  /** How many threads may work now. */
  int threads() {
    return Math.min(usualMost, wanted + relief.get()) + compensating;
  }

  /** How many threads may be there. */
  int most() {
    return usualMost + compensating;
  }
}
