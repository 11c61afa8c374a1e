package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockLayout;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

final class CacheTaskTest {

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
      int[] held = numbers(shards);
      int[] slots = IntStream.of(held).map(shard -> shard < 0 ? shard : 10 + shard).toArray();
      CacheTask task = new DumpTask(cache.opened(), 1, whole);
      Transfer part = task.onward(held, slots, from, to, ShardListener.NONE);
      int[] wanted = numbers(expected);
      assertThat(part.shardCount()).isEqualTo(wanted.length);
      for (int i = 0; i < wanted.length; i++) {
        assertThat(part.ids().hex(i)).isEqualTo(whole.ids().hex(wanted[i]));
        assertThat(part.shardIndex(i)).isEqualTo(whole.shardIndex(wanted[i]));
        assertThat(part.region(i, 0)).isSameAs(memory.region());
        assertThat(part.offset(i, 0)).isEqualTo(memory.offset(10 + wanted[i]));
      }
    }
  }

  private static int[] numbers(String text) {
    return text.isEmpty()
        ? new int[0]
        : Stream.of(text.split(" "))
            .mapToInt(each -> each.equals("-") ? CopyBatch.ENDED : Integer.parseInt(each))
            .toArray();
  }
}
