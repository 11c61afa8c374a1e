package ucm.store.file.volume;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import ucm.testkit.ManualClock;

/** Whether this process ran, by when it looks. */
final class StandstillTest {

  @Test
  void isFoundOnceByALookThatComesTooLate() {
    ManualClock clock = new ManualClock();
    Standstill standstill = new Standstill(Duration.ofSeconds(2).toNanos(), clock);
    clock.advance(Duration.ofSeconds(2));
    assertThat(standstill.hasBeen()).as("as late as a busy machine may be").isFalse();
    clock.advance(Duration.ofSeconds(2).plusNanos(1));
    assertThat(standstill.hasBeen()).isTrue();
    assertThat(standstill.hasBeen()).as("that was it").isFalse();
  }
}
