package ucm.store.fake;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.store.fake.BlockIndex.IdTable;

final class IdTableTest {

  private record Id(long high, long low) {}

  /** Against a map that is known to be right; few ids in a small table, so that chains collide. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 7, 8, 33})
  void agreesWithAMapInAccessOrder(int capacity) {
    int bits = 70;
    IdTable table = new IdTable(capacity, bits);
    Map<Id, BitSet> model = new LinkedHashMap<>(16, 0.75f, true);
    Random random = new Random(capacity);
    for (int step = 0; step < 20_000; step++) {
      Id id = new Id(random.nextInt(8), random.nextInt(8));
      int slot = table.find(id.high(), id.low());
      assertThat(slot != IdTable.NONE).as("step %d", step).isEqualTo(model.containsKey(id));
      if (slot == IdTable.NONE) {
        if (table.isFull()) {
          assertThat(model).hasSize(capacity);
          model.remove(model.keySet().iterator().next());
          table.removeOldest();
        }
        slot = table.add(id.high(), id.low());
        model.put(id, new BitSet());
      } else if (random.nextInt(4) == 0) {
        table.remove(slot);
        model.remove(id);
        continue;
      } else {
        table.use(slot);
      }
      int bit = random.nextInt(bits);
      model.get(id).set(bit);
      assertThat(table.mark(slot, bit)).isEqualTo(model.get(id).cardinality());
      assertThat(table.size()).isEqualTo(model.size());
    }
  }

  @Test
  void holdsItsCapacityOfIdsThatDifferInOneWord() {
    int capacity = 100_000;
    IdTable table = new IdTable(capacity, 0);
    for (int i = 0; i < capacity; i++) {
      table.add(i % 2 == 0 ? i : 0, i % 2 == 0 ? 0 : i);
    }
    assertThat(table.isFull()).isTrue();
    for (int i = 0; i < capacity; i++) {
      long high = i % 2 == 0 ? i : 0;
      long low = i % 2 == 0 ? 0 : i;
      assertThat(table.find(high, low)).isNotEqualTo(IdTable.NONE);
      assertThat(table.find(low, high) != IdTable.NONE).isEqualTo(i == 0);
    }
    for (int i = 0; i < capacity; i++) {
      table.removeOldest();
    }
    assertThat(table.size()).isZero();
    assertThat(table.find(2, 0)).isEqualTo(IdTable.NONE);
  }
}
