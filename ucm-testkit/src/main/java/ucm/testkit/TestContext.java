package ucm.testkit;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;

/**
 * What a store under test is opened with.
 *
 * @param next the next stage, open; null for the last stage
 * @param metrics where the store counts, often a {@link RecordingMetrics}
 * @param nanoClock the store's clock, often a {@link ManualClock}
 */
public record TestContext(@Nullable Store next, StoreMetrics metrics, LongSupplier nanoClock)
    implements StoreContext {

  /** A last stage's, with the clock of the system. */
  public TestContext(StoreMetrics metrics) {
    this(null, metrics);
  }

  /** One with the clock of the system. */
  public TestContext(@Nullable Store next, StoreMetrics metrics) {
    this(next, metrics, System::nanoTime);
  }
}
