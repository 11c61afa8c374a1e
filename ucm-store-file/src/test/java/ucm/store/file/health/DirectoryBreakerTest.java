package ucm.store.file.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.store.file.health.DirectoryBreaker.State;

final class DirectoryBreakerTest {

  private final StoreMetrics.Counter ignored = StoreMetrics.NONE.counter("", "");
  private final AtomicInteger faults = new AtomicInteger();
  private final List<String> told = new ArrayList<>();
  private Runnable probe = () -> {};
  private final DirectoryBreaker breaker = breaker(4, 2);

  private DirectoryBreaker breaker(int windowSize, int threshold) {
    return new DirectoryBreaker(
        "Test",
        0,
        "directory",
        new DirectoryHealth.Rules(1, 1, windowSize, threshold),
        () -> probe.run(),
        new DirectoryBreaker.Reports(
            ignored, ignored, ignored, _ -> told.add("down"), _ -> told.add("up")));
  }

  private void fail() {
    breaker.failed(new StoreException("fault " + faults.incrementAndGet()));
  }

  private void open() {
    fail();
    fail();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  private void failToProbe() {
    throw new StoreException("probe " + faults.incrementAndGet());
  }

  @Test
  void opensWhenEnoughOfTheLastResultsFailed() {
    fail();
    breaker.succeeded();
    breaker.succeeded();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    assertThat(breaker.refusal()).isNull();
    fail();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
    assertThat(breaker.refusal()).hasMessageContaining("directory").hasMessageContaining("fault 2");
    assertThat(told).containsExactly("down");
  }

  @Test
  void forgetsFailuresThatLeftTheWindow() {
    for (int round = 0; round < 10; round++) {
      fail();
      breaker.succeeded();
      breaker.succeeded();
      breaker.succeeded();
    }
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void countsAFaultOnceThatSeveralTellOf() {
    StoreException fault = new StoreException("of a block that four threads write");
    for (int i = 0; i < 4; i++) {
      breaker.failed(fault);
    }
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    fail();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void letsOneProbeDecideAndNothingElse() {
    open();
    breaker.succeeded();
    fail();
    assertThat(told).as("already open").containsExactly("down");
    probe =
        () -> {
          assertThat(breaker.state()).isEqualTo(State.HALF_OPEN);
          breaker.succeeded();
          fail();
          assertThat(breaker.state()).isEqualTo(State.HALF_OPEN);
          assertThat(breaker.probe(0)).as("no second one beside it").isFalse();
          failToProbe();
        };
    assertThat(breaker.probe(0)).isTrue();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
    probe = () -> {};
    assertThat(breaker.probe(0)).isTrue();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    assertThat(breaker.refusal()).isNull();
    assertThat(told).containsExactly("down", "up");
  }

  @Test
  void ignoresAProbeThatBeganBeforeItOpened() {
    probe = this::open;
    breaker.probe(0);
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void startsWithAnEmptyWindowOnceItHasClosed() {
    open();
    breaker.probe(0);
    fail();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    fail();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void countsProbesOfAnIdleDirectory() {
    probe = this::failToProbe;
    breaker.probe(0);
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    breaker.probe(0);
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void outlivesAProbeThatThrowsAnError() {
    open();
    probe =
        () -> {
          throw new LinkageError("broken");
        };
    assertThat(breaker.probe(0)).isTrue();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
    probe = () -> {};
    breaker.probe(0);
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void takesTheWholeWindowForAThresholdBeyondIt() {
    DirectoryBreaker small = breaker(1, 5);
    small.failed(new StoreException("the only one"));
    assertThat(small.state()).isEqualTo(State.OPEN);
  }
}
