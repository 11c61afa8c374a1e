package ucm.lite.record;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BlockNumbersTest {
  @Test
  void numbersIdsInTheOrderFirstSeen() {
    BlockNumbers index = new BlockNumbers();

    assertThat(index.number(0, 5)).isZero();
    assertThat(index.number(5, 0)).isEqualTo(1);
    assertThat(index.number(0, 0)).isEqualTo(2);
    assertThat(index.number(0, 5)).isZero();
    assertThat(index.size()).isEqualTo(3);
  }

  @Test
  void agreesWithAMapOfObjectsWhileItGrows() {
    record Id(long high, long low) {}
    Map<Id, Integer> expected = new HashMap<>();
    BlockNumbers index = new BlockNumbers();
    Random random = new Random(1);
    for (int i = 0; i < 200_000; i++) {
      Id id = new Id(random.nextInt(4), random.nextInt(30_000) - 15_000L);
      int number = expected.computeIfAbsent(id, _ -> expected.size());
      assertThat(index.number(id.high(), id.low())).isEqualTo(number);
    }
    assertThat(index.size()).isEqualTo(expected.size());
  }
}
