package ucm.store.cache.eviction;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class BlockTableTest {

  private static final int KEYS = 300;

  @Test
  void doesWhatAMapDoes() {
    Random random = new Random(5);
    BlockTable table = new BlockTable(3, 4);
    Map<Long, Integer> expected = new HashMap<>();
    for (int step = 0; step < 100_000; step++) {
      long key = random.nextInt(KEYS);
      Integer entry = expected.get(key);
      assertThat(find(table, key)).isEqualTo(entry == null ? BlockTable.NONE : entry);
      if (entry != null && random.nextBoolean()) {
        table.clearSlot(entry, 1);
        assertThat(table.held(entry)).isZero();
        table.remove(entry);
        expected.remove(key);
      } else if (entry == null) {
        if (table.isFull()) {
          table = table.grown();
        }
        int added = table.add(key, ~key);
        assertThat(table.slot(added, 0)).isEqualTo(BlockTable.NONE);
        table.putSlot(added, 1, (int) key);
        expected.put(key, added);
      }
    }
    for (long key = 0; key < KEYS; key++) {
      Integer entry = expected.get(key);
      assertThat(find(table, key)).isEqualTo(entry == null ? BlockTable.NONE : entry);
      if (entry != null) {
        assertThat(table.slot(entry, 1)).isEqualTo((int) key);
      }
    }
  }

  private static int find(BlockTable table, long key) {
    return table.find(BlockTable.hash(key, ~key), key, ~key);
  }
}
