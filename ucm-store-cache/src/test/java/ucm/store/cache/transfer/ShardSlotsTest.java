package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockLayout;
import ucm.api.Places;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.fixture.TestCache;
import ucm.store.cache.pool.ObjectPool;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

final class ShardSlotsTest {

  private final ObjectPool<int[]> arrays = ObjectPool.ofNumbers();

  @Test
  void arraysGoBackWithTheLastUse() {
    ShardSlots held = of(4, 5, 6);
    held.share(3);
    held.endUse(2);
    assertThat(arrays.count()).isZero();
    assertThat(held.shards).startsWith(4, 5, 6);
    held.endUse(1);
    assertThat(arrays.count()).isEqualTo(2);
  }

  @Test
  void whoLooksAfterTheLastUseFindsNothing() {
    ShardSlots held = of(4);
    held.share(1);
    held.endUse(1);
    assertThatThrownBy(() -> held.slots[0] = 1).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> held.add(5, 1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void moreUsesThanWereSaidAreAnErrorAndGiveNothingBack() {
    ShardSlots held = of(4);
    held.share(1);
    held.endUse(1);
    assertThatThrownBy(() -> held.endUse(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("1 times more");
    assertThat(arrays.count()).isEqualTo(2);
  }

  @Test
  void takesNoArraysWithoutAShard() {
    ShardSlots held = new ShardSlots(arrays, 10);
    held.share(1);
    held.endUse(1);
    assertThat(arrays.count()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "4 5 6, 0, 3, 4 5 6",
    "9 4 5 7, 1, 3, 4 5",
    "0 4 5 7, 1, 4, 4 5 7",
    "0 1 7, 0, 3, 0 1 7",
    "3 - 5, 0, 3, 3 5",
    "- 0 1, 0, 3, 0 1",
    "3 4 -, 0, 3, 3 4",
    "- -, 0, 2, ''",
  })
  void goesOnWithWhatIsNotDoneWith(String shards, int from, int to, String expected) {
    BlockLayout layout = BlockLayout.uniform(512, 512, 2 * 512);
    Transfer whole =
        TransferMemory.ofBlocks(layout, Placement.PACKED, BlockBytes.ids(1, 5)).transfer();
    try (TestCache cache = new TestCache(layout, null, 64, Map.of())) {
      PoolMemory memory = cache.opened().memory;
      ShardSlots held = of(numbers(shards));
      Transfer part = held.onward(memory, whole, from, to, new Places(layout), ShardListener.NONE);
      int[] wanted = numbers(expected);
      assertThat(part.shardCount()).isEqualTo(wanted.length);
      for (int i = 0; i < wanted.length; i++) {
        assertThat(part.ids().hex(i)).isEqualTo(whole.ids().hex(wanted[i]));
        assertThat(part.shardIndex(i)).isEqualTo(whole.shardIndex(wanted[i]));
        assertThat(part.region(i, 0)).isSameAs(memory.region(10 + wanted[i]));
        assertThat(part.offset(i, 0)).isEqualTo(memory.offset(10 + wanted[i]));
      }
    }
  }

  private static int[] numbers(String text) {
    return text.isEmpty()
        ? new int[0]
        : Stream.of(text.split(" "))
            .mapToInt(each -> each.equals("-") ? DumpCopy.NOT_COPIED : Integer.parseInt(each))
            .toArray();
  }

  private ShardSlots of(int... shards) {
    ShardSlots held = new ShardSlots(arrays, shards.length);
    for (int shard : shards) {
      held.add(shard, shard < 0 ? shard : 10 + shard);
    }
    return held;
  }
}
