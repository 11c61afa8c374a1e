package ucm.lite.curve;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RecencyOrderTest {
  @Test
  void countsDistinctBlocksSinceATouch() {
    RecencyOrder order = new RecencyOrder();
    order.ensureBlocks(3);
    order.touch(0);
    order.touch(1);
    order.touch(1);
    order.touch(2);

    assertThat(order.touchedSince(order.lastTime(2))).isEqualTo(1);
    assertThat(order.touchedSince(order.lastTime(1))).isEqualTo(2);
    assertThat(order.touchedSince(order.lastTime(0))).isEqualTo(3);
  }

  @Test
  void agreesWithAListThroughManyDealsOfTheTimes() {
    for (int blocks : new int[] {1, 63, 64, 65, 128, 511, 512, 513}) {
      RecencyOrder order = new RecencyOrder();
      List<Integer> recentFirst = new ArrayList<>();
      Random random = new Random(blocks);
      for (int i = 0; i < 20_000; i++) {
        // The number of blocks grows slowly, so that the times run out at every fill.
        Integer block = random.nextInt(1 + Math.min(blocks - 1, i / 10));
        order.ensureBlocks(block + 1);
        order.touch(block);
        recentFirst.remove(/* element */ block);
        recentFirst.addFirst(block);
        int rank = random.nextInt(recentFirst.size());
        assertThat(order.touchedSince(order.lastTime(recentFirst.get(rank)))).isEqualTo(rank + 1);
      }
    }
  }
}
