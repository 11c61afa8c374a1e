package ucm.api;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** What a store is given when it opens. */
public interface StoreContext {

  /** The next stage, open; null for the last stage. */
  @Nullable Store next();

  /** Where the store counts what it does. */
  default StoreMetrics metrics() {
    return StoreMetrics.NONE;
  }

  /** The clock for deadlines and ages, in nanoseconds from an arbitrary start; monotonic. */
  default LongSupplier nanoClock() {
    return System::nanoTime;
  }

  /** A context with a next stage, or null, and the defaults otherwise. */
  static StoreContext of(@Nullable Store next) {
    return () -> next;
  }
}
