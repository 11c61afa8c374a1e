package ucm.platform.table;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class BlockTableTest {

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 1000})
  void doesWhatAMapDoes(int expected) {
    Random random = new Random(5);
    BlockTable table = new BlockTable(expected);
    Map<Long, Integer> model = new HashMap<>();
    for (int step = 0; step < 100_000; step++) {
      // Low words alone, high words alone, and both: ids need not be hashes.
      long key = random.nextInt(600);
      long high = key % 3 == 0 ? 0 : key;
      long low = key % 3 == 1 ? 0 : key;
      Integer entry = model.get(key);
      assertThat(table.find(high, low)).isEqualTo(entry == null ? BlockTable.NONE : entry);
      if (entry != null && random.nextBoolean()) {
        table.remove(entry);
        model.remove(key);
      } else {
        int put = table.put(high, low);
        assertThat(put).isLessThan(table.end());
        assertThat(entry == null || entry == put).isTrue();
        assertThat(model.put(key, put)).isEqualTo(entry);
        assertThat(table.high(put)).isEqualTo(high);
        assertThat(table.low(put)).isEqualTo(low);
      }
      assertThat(table.size()).isEqualTo(model.size());
    }
    assertThat(model.values()).doesNotHaveDuplicates();
  }

  @Test
  void numbersIdsInTheOrderTheyComeAndThoseRemovedFirst() {
    BlockTable table = new BlockTable(0);
    for (int i = 0; i < 100_000; i++) {
      assertThat(table.put(i, -i)).isEqualTo(i);
    }
    table.remove(70);
    assertThat(table.put(1, 1)).isEqualTo(70);
    assertThat(table.put(2, 2)).isEqualTo(100_000);
    assertThat(table.end()).isEqualTo(100_001);
  }
}
