package ucm.store.cache.transfer;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.StoreClosedException;

/**
 * Says that the next stage does not write, which nobody waits for who could say it: once for each kind of
 * cause, and again when that has not come for a while, as on a disk that was full before. Thread-safe.
 */
final class FailedWrites {

  private static final Logger LOG = LoggerFactory.getLogger(FailedWrites.class);
  private static final long PAST_NANOS = TimeUnit.MINUTES.toNanos(10);

  private final LongSupplier clock;
  // When a cause came last, by its class.
  private final Map<String, Long> last = new ConcurrentHashMap<>();

  /** Has said nothing. */
  FailedWrites(LongSupplier clock) {
    this.clock = clock;
  }

  /** A block was not written. */
  void add(Store next, @Nullable Throwable cause) {
    if (cause instanceof StoreClosedException) {
      // The end of the store tells what it drops.
      return;
    }
    long now = clock.getAsLong();
    Long before = last.put(cause == null ? "" : cause.getClass().getName(), now);
    if (before == null || now - before > PAST_NANOS) {
      LOG.warn(
          "Cache: {} did not write a block, which is not kept: {}; further ones are counted in"
              + " cache_backend_failures",
          next,
          cause == null ? "it does not say why" : cause.getMessage());
    }
  }
}
