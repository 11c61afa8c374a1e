package ucm.api.admin;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;
import ucm.api.admin.StoreDirectories.Observer;

/** Holds readers back so that together they read no more than some bytes in a second. Thread-safe. */
public final class ReadRateLimit {

  private final long bytesPerSecond;
  private final LongSupplier clock;
  private final LongConsumer pause;

  // Guarded by this: when the bytes handed out so far may all have been read.
  private long freeNanos;

  /**
   * Begins.
   *
   * @param bytesPerSecond 0 for no limit
   * @param clock in nanoseconds
   * @param pause waits for some nanoseconds
   */
  public ReadRateLimit(long bytesPerSecond, LongSupplier clock, LongConsumer pause) {
    this.bytesPerSecond = bytesPerSecond;
    this.clock = clock;
    this.pause = pause;
    this.freeNanos = clock.getAsLong();
  }

  /** One that waits no longer than an instant at a time once the work is to end. */
  public static ReadRateLimit of(long bytesPerSecond, Observer observer) {
    return new ReadRateLimit(
        bytesPerSecond,
        System::nanoTime,
        nanos -> {
          long end = System.nanoTime() + nanos;
          long left = nanos;
          while (left > 0 && !observer.isStopped()) {
            LockSupport.parkNanos(Math.min(left, TimeUnit.MILLISECONDS.toNanos(100)));
            left = end - System.nanoTime();
          }
        });
  }

  /** Waits until some more bytes may be read. */
  public void take(long bytes) {
    if (bytesPerSecond == 0) {
      return;
    }
    long wait;
    synchronized (this) {
      long now = clock.getAsLong();
      // Idle time is not made up for.
      long start = Math.max(freeNanos, now);
      freeNanos = start + (long) ((double) bytes / bytesPerSecond * TimeUnit.SECONDS.toNanos(1));
      wait = start - now;
    }
    if (wait > 0) {
      pause.accept(wait);
    }
  }
}
