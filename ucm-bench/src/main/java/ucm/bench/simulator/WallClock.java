package ucm.bench.simulator;

import java.util.concurrent.TimeUnit;

/**
 * Real time that can be stopped for work that a real engine does not have, such as making and comparing
 * the bytes of a KV cache. One thread stops it, and only while no other waits; all may ask.
 */
public final class WallClock implements EngineClock {

  private volatile long stoppedNanos;
  private long stoppedAt;

  /** A clock that goes. */
  public WallClock() {}

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

  /** Stops the clock; what {@link #nanos} says until {@link #go} does not count. */
  void stop() {
    stoppedAt = System.nanoTime();
  }

  /** Lets the clock go on where it was stopped. */
  // Written by the thread that stops the clock alone.
  @SuppressWarnings("NonAtomicVolatileUpdate")
  void go() {
    stoppedNanos += System.nanoTime() - stoppedAt;
  }

  /** How long the clock has stood still. */
  long stoppedNanos() {
    return stoppedNanos;
  }
}
