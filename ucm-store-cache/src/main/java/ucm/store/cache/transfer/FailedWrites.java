package ucm.store.cache.transfer;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.platform.fault.RecentFaults;

/** Says that the next stage does not write, which nobody waits for who could say it. Thread-safe. */
final class FailedWrites {

  private static final Logger LOG = LoggerFactory.getLogger(FailedWrites.class);

  private final RecentFaults recent;

  /** Has said nothing. */
  FailedWrites(LongSupplier clock) {
    recent = new RecentFaults(clock);
  }

  /** A block was not written. */
  void add(Store next, @Nullable Throwable cause) {
    // The end of the store tells what it drops.
    if (!(cause instanceof StoreClosedException) && recent.isNews(RecentFaults.kind(cause))) {
      LOG.warn(
          "Cache: {} did not write a block, which is not kept: {}; further ones are counted in"
              + " cache_backend_failures",
          next,
          cause == null ? "it does not say why" : cause.getMessage());
    }
  }
}
