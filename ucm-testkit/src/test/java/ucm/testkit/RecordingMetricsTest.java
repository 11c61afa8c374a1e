package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

final class RecordingMetricsTest {

  private final RecordingMetrics metrics = new RecordingMetrics();

  @Test
  void readsWhatWasRecorded() {
    metrics.counter("a_blocks", "A.").add(3);
    metrics.counter("a_blocks", "A.").increment();
    metrics.histogram("b_ms", "B.").record(1.5);
    metrics.histogram("b_ms", "B.").record(2);
    metrics.gauge("c_bytes", "C.", () -> 7);
    assertThat(metrics.count("a_blocks")).isEqualTo(4);
    assertThat(metrics.recorded("b_ms")).isEqualTo(2);
    assertThat(metrics.sum("b_ms")).isEqualTo(3.5);
    assertThat(metrics.gauge("c_bytes")).isEqualTo(7);
    assertThat(metrics.names()).containsExactly("a_blocks", "b_ms", "c_bytes");
  }

  @Test
  void givesOneInstrumentPerName() {
    assertThat(metrics.counter("x", "")).isSameAs(metrics.counter("x", ""));
    assertThat(metrics.histogram("y", "")).isSameAs(metrics.histogram("y", ""));
  }

  @Test
  void refusesACounterThatShrinksAndAnUnknownName() {
    assertThatThrownBy(() -> metrics.counter("x", "").add(-1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> metrics.count("z"))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("z; there are [x]");
  }
}
