package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class SleepAffinityTest {

  private final List<Long> all = AllowedCores.now();
  private final SleepAffinity affinity = new SleepAffinity();

  @Test
  void sleepsOnOneHalfOrTheOtherAndWakesAnywhere() {
    assumeThat(all.size()).as("processors").isBetween(2, 4);

    affinity.enter(false);
    List<Long> lower = AllowedCores.now();
    affinity.leave();
    assertThat(AllowedCores.now()).isEqualTo(all);
    affinity.enter(true);
    List<Long> upper = AllowedCores.now();
    affinity.leave();

    assertThat(AllowedCores.now()).isEqualTo(all);
    assertThat(lower).isNotEmpty();
    assertThat(upper).isNotEmpty().doesNotContainAnyElementsOf(lower);
    assertThat(all)
        .containsExactlyElementsOf(Stream.concat(lower.stream(), upper.stream()).toList());
  }
}
