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
          "%s blocks could not be stored and %s are still on their way after %s ms"
              .formatted(flushed.failedCount(), flushed.pendingBlocks(), timeout.toMillis()),
          flushed.cause());
    }
    return nanos;
  }
}
