package ucm.bench.simulator;

import java.util.concurrent.TimeUnit;

/** The time of a simulated engine: nanoseconds since an origin of its own. */
public interface EngineClock {

  long nanos();

  /** Returns when a time has come; at once when it is past. */
  void waitUntil(long nanos) throws InterruptedException;

  /**
   * Time that passes only by being waited for, at once. Right for an engine that moves no bytes, as then
   * nothing but simulated compute takes time. Used by one thread.
   */
  final class Virtual implements EngineClock {

    private long now;

    @Override
    public long nanos() {
      return now;
    }

    @Override
    public void waitUntil(long nanos) {
      now = Math.max(now, nanos);
    }
  }

  /**
   * Real time, but for what the engine spends on things that an engine does not do: the clock stands still
   * then. One thread stops it, and only while no other waits; all may ask.
   */
  final class Wall implements EngineClock {

    private volatile long stoppedNanos;

    @Override
    public long nanos() {
      return System.nanoTime() - stoppedNanos;
    }

    @Override
    public void waitUntil(long nanos) throws InterruptedException {
      for (long left = nanos - nanos(); left > 0; left = nanos - nanos()) {
        TimeUnit.NANOSECONDS.sleep(left);
      }
    }

    /** Lets the time since some {@link System#nanoTime} not count. */
    // Written by one thread alone.
    @SuppressWarnings("NonAtomicVolatileUpdate")
    void stoppedSince(long start) {
      stoppedNanos += System.nanoTime() - start;
    }

    long stoppedNanos() {
      return stoppedNanos;
    }
  }
}
