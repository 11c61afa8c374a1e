package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

final class ManualClockTest {

  private final ManualClock clock = new ManualClock();

  @Test
  void standsStillUntilItIsMoved() {
    assertThat(clock.getAsLong()).isZero();
    clock.advance(Duration.ofMillis(3));
    assertThat(clock.getAsLong()).isEqualTo(3_000_000);
  }
}
