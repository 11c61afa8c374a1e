package ucm.store.file.volume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.volume.Breaker.State;

final class BreakerTest {

  private final AtomicInteger faults = new AtomicInteger();
  private final List<String> told = new ArrayList<>();
  private Runnable probe = () -> {};
  private final Breaker breaker = breaker(4, 2);

  private Breaker breaker(int windowSize, int threshold) {
    return new Breaker(
        "Test",
        "directory",
        new FileStoreConfig.Health(true, 1, 1, windowSize, threshold),
        () -> 0,
        Breaker.Counters.of(StoreMetrics.NONE, "")) {

      @Override
      protected void tryOut() {
        probe.run();
      }

      @Override
      protected void opened() {
        told.add("down");
      }

      @Override
      protected void closed() {
        told.add("up");
      }
    };
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
          assertThat(breaker.probe()).as("no second one beside it").isFalse();
          failToProbe();
        };
    assertThat(breaker.probe()).isTrue();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
    probe = () -> {};
    assertThat(breaker.probe()).isTrue();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    assertThat(breaker.refusal()).isNull();
    assertThat(told).containsExactly("down", "up");
  }

  @Test
  void ignoresAProbeThatBeganBeforeItOpened() {
    probe = this::open;
    breaker.probe();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void startsWithAnEmptyWindowOnceItHasClosed() {
    open();
    breaker.probe();
    fail();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
    fail();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
  }

  @Test
  void outlivesAProbeThatThrowsAnError() {
    open();
    probe =
        () -> {
          throw new LinkageError("broken");
        };
    assertThat(breaker.probe()).isTrue();
    assertThat(breaker.state()).isEqualTo(State.OPEN);
    probe = () -> {};
    breaker.probe();
    assertThat(breaker.state()).isEqualTo(State.CLOSED);
  }

  @Test
  void takesTheWholeWindowForAThresholdBeyondIt() {
    Breaker small = breaker(1, 5);
    small.failed(new StoreException("the only one"));
    assertThat(small.state()).isEqualTo(State.OPEN);
  }
}
