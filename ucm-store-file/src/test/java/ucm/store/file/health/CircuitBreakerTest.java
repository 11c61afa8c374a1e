package ucm.store.file.health;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.store.file.health.CircuitBreaker.Change;
import ucm.store.file.health.CircuitBreaker.State;

final class CircuitBreakerTest {

  private final CircuitBreaker breaker = new CircuitBreaker(4, 2);

  @Test
  void opensWhenEnoughOfTheLastResultsFailed() {
    assertThat(breaker.failed()).isEqualTo(Change.NONE);
    breaker.succeeded();
    breaker.succeeded();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    assertThat(breaker.failed()).isEqualTo(Change.OPENED);
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void forgetsFailuresThatLeftTheWindow() {
    for (int round = 0; round < 10; round++) {
      assertThat(breaker.failed()).isEqualTo(Change.NONE);
      breaker.succeeded();
      breaker.succeeded();
      breaker.succeeded();
    }
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void letsOneProbeDecideAndNothingElse() {
    open();
    breaker.succeeded();
    assertThat(breaker.failed()).as("already open").isEqualTo(Change.NONE);
    breaker.beginProbe();
    assertThat(breaker.state()).isEqualTo(State.HALF_OPEN);
    breaker.succeeded();
    assertThat(breaker.failed()).isEqualTo(Change.NONE);
    assertThat(breaker.state()).isEqualTo(State.HALF_OPEN);
    assertThat(breaker.endProbe(false)).isEqualTo(Change.NONE);
    assertThat(breaker.state()).isEqualTo(State.OPEN);
    breaker.beginProbe();
    assertThat(breaker.endProbe(true)).isEqualTo(Change.CLOSED);
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void ignoresAProbeThatBeganBeforeItOpened() {
    breaker.beginProbe();
    open();
    assertThat(breaker.endProbe(true)).isEqualTo(Change.NONE);
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void startsWithAnEmptyWindowOnceItHasClosed() {
    open();
    breaker.beginProbe();
    breaker.endProbe(true);
    assertThat(breaker.failed()).isEqualTo(Change.NONE);
    assertThat(breaker.failed()).isEqualTo(Change.OPENED);
  }

  @Test
  void countsProbesOfAnIdleVolume() {
    breaker.beginProbe();
    assertThat(breaker.endProbe(false)).isEqualTo(Change.NONE);
    breaker.beginProbe();
    assertThat(breaker.endProbe(false)).isEqualTo(Change.OPENED);
  }

  @Test
  void takesTheWholeWindowForAThresholdBeyondIt() {
    CircuitBreaker small = new CircuitBreaker(1, 5);
    assertThat(small.failed()).isEqualTo(Change.OPENED);
  }

  private void open() {
    breaker.failed();
    breaker.failed();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }
}
