package ucm.api.admin;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** How fast verify reads. */
final class ReadRateLimitTest {

  private final AtomicLong clock = new AtomicLong();

  @Test
  void readsNoMoreInASecondThanItMay() {
    ReadRateLimit limit = new ReadRateLimit(1000, clock::get, clock::addAndGet);
    for (int i = 0; i < 50; i++) {
      limit.take(100);
    }
    assertThat(clock.get())
        .as("4900 bytes were read before the last 100 began")
        .isEqualTo(TimeUnit.MILLISECONDS.toNanos(4900));
  }

  @Test
  void doesNotMakeUpForIdleTime() {
    ReadRateLimit limit = new ReadRateLimit(1000, clock::get, clock::addAndGet);
    limit.take(100);
    clock.set(TimeUnit.SECONDS.toNanos(60));
    for (int i = 0; i < 11; i++) {
      limit.take(100);
    }
    assertThat(clock.get()).isEqualTo(TimeUnit.SECONDS.toNanos(61));
  }

  @Test
  void doesNotWaitWithoutALimit() {
    ReadRateLimit limit =
        new ReadRateLimit(
            0,
            clock::get,
            nanos -> {
              throw new AssertionError("waits " + nanos);
            });
    limit.take(Long.MAX_VALUE);
    limit.take(1);
  }
}
