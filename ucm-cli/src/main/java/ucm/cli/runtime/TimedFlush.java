package ucm.cli.runtime;

import java.time.Duration;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreException;

/** How long a store takes until all that was dumped is written. */
public final class TimedFlush {

  private TimedFlush() {}

  /** Waits until a store has written everything; returns the nanoseconds it took. */
  public static long nanos(Store store, Duration timeout) throws InterruptedException {
    long start = System.nanoTime();
    FlushResult flushed = store.flush(timeout);
    long nanos = System.nanoTime() - start;
    if (!flushed.ok()) {
      throw new StoreException(
          flushed.failedCount()
              + " blocks could not be stored and "
              + flushed.pendingBlocks()
              + " are still on their way after "
              + timeout.toMillis()
              + " ms",
          flushed.cause());
    }
    return nanos;
  }
}
