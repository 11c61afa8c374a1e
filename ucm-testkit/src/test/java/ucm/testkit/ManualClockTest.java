package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ManualClockTest {

  private final ManualClock clock = new ManualClock();
  private final List<String> ran = new ArrayList<>();

  @Test
  void standsStillUntilItIsMoved() {
    assertThat(clock.getAsLong()).isZero();
    clock.advance(Duration.ofMillis(3));
    assertThat(clock.getAsLong()).isEqualTo(3_000_000);
  }

  @Test
  void runsWhatBecomesDueEarliestFirstAndOnce() {
    clock.runAfter(Duration.ofMillis(20), () -> ran.add("second"));
    clock.runAfter(Duration.ofMillis(10), () -> ran.add("first"));
    clock.runAfter(Duration.ofMillis(30), () -> ran.add("third"));
    clock.advance(Duration.ofMillis(9));
    assertThat(ran).isEmpty();
    clock.advance(Duration.ofMillis(11));
    assertThat(ran).containsExactly("first", "second");
    clock.advance(Duration.ofMillis(10));
    clock.advance(Duration.ofMillis(10));
    assertThat(ran).containsExactly("first", "second", "third");
  }

  @Test
  void runsWhatAnActionAddsWhenThatIsDueToo() {
    clock.runAfter(
        Duration.ofMillis(1), () -> clock.runAfter(Duration.ZERO, () -> ran.add("added")));
    clock.advance(Duration.ofMillis(1));
    assertThat(ran).containsExactly("added");
  }
}
