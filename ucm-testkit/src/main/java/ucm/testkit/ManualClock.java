package ucm.testkit;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * A clock that stands still until a test moves it; in nanoseconds, as {@link
 * ucm.api.StoreContext#nanoClock()} wants it. Thread-safe.
 */
public final class ManualClock implements LongSupplier {

  private final AtomicLong nowNanos = new AtomicLong();

  /** A clock at 0. */
  public ManualClock() {}

  @Override
  public long getAsLong() {
    return nowNanos.get();
  }

  /** Moves the clock forward. */
  public void advance(Duration by) {
    var _ = nowNanos.addAndGet(by.toNanos());
  }
}
