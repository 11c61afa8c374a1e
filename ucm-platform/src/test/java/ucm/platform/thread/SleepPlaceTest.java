package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class SleepPlaceTest {

  private final List<Long> all = AllowedCores.now();
  private final SleepPlace place = new SleepPlace();

  @Test
  void sleepsOnOneHalfOrTheOtherAndWakesAnywhere() {
    assumeThat(all.size()).as("processors").isBetween(2, 4);

    place.enter(false);
    List<Long> lower = AllowedCores.now();
    place.leave();
    assertThat(AllowedCores.now()).isEqualTo(all);
    place.enter(true);
    List<Long> upper = AllowedCores.now();
    place.leave();

    assertThat(AllowedCores.now()).isEqualTo(all);
    assertThat(lower).isNotEmpty();
    assertThat(upper).isNotEmpty().doesNotContainAnyElementsOf(lower);
    assertThat(all)
        .containsExactlyElementsOf(Stream.concat(lower.stream(), upper.stream()).toList());
  }
}
