package ucm.store.fake;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.testkit.BlockBytes;

final class BlockIndexTest {

  private static final MemoryRegion MEMORY = MemoryRegion.device(0, 0, 1 << 20);

  private final LongAdder evictions = new LongAdder();

  @Test
  void keepsTheBlocksUsedLast() {
    BlockIndex index = new BlockIndex(4, 1, evictions::add);
    BlockIds ids = BlockBytes.ids(1, 8);
    index.add(shards(1, ids.slice(0, 4), 0));
    // Look-ups are no use; a load and a second dump are.
    index.lookup(ids);
    assertThat(index.use(shards(1, ids.slice(0, 1), 0))).isEqualTo(new BitSet());
    index.add(shards(1, ids.slice(1, 2), 0));
    index.add(shards(1, ids.slice(4, 6), 0));
    assertThat(index.lookup(ids)).hasToString("{0, 1, 4, 5}");
    assertThat(index.size()).isEqualTo(4);
    assertThat(evictions.sum()).isEqualTo(2);
  }

  @Test
  void namesTheShardsOfAbsentBlocks() {
    BlockIndex index = new BlockIndex(4000, 1, evictions::add);
    BlockIds ids = BlockBytes.ids(2, 3000);
    index.add(shards(1, ids.slice(0, 1000), 0));
    index.add(shards(1, ids.slice(1001, 3000), 0));
    assertThat(index.use(shards(1, ids, 0))).hasToString("{1000}");
    assertThat(index.run(ids)).isEqualTo(1000);
    assertThat(index.run(ids.slice(1001, 3000))).isEqualTo(1999);
    assertThat(index.lookup(ids).cardinality()).isEqualTo(2999);
  }

  @Test
  void forgetsIncompleteBlocksInTheOrderOfTheirUse() {
    BlockIndex index = new BlockIndex(2, 3, evictions::add);
    BlockIds ids = BlockBytes.ids(3, 3);
    index.add(shards(3, ids.slice(0, 2), 0, 1));
    index.add(shards(3, ids.slice(0, 1), 0));
    index.add(shards(3, ids.slice(2, 3), 0, 1));
    assertThat(evictions.sum()).isEqualTo(1);
    // The second was forgotten, so its last shard does not make it whole; the others' does.
    index.add(shards(3, ids, 2));
    assertThat(index.lookup(ids)).hasToString("{0, 2}");
    index.add(shards(3, ids.slice(1, 2), 0, 1, 2));
    assertThat(index.lookup(ids).get(1)).isTrue();
  }

  @Test
  void boundsIncompleteBlocksOfAnyNumberOfShards() {
    for (int shardCount : new int[] {2, 64, 65, 100_000}) {
      BlockIndex index = new BlockIndex(1 << 20, shardCount, evictions::add);
      BlockIds ids = BlockBytes.ids(4, 70_000);
      long before = evictions.sum();
      index.add(shards(shardCount, ids, shardCount - 1));
      assertThat(evictions.sum() - before).as("%d shards", shardCount).isPositive();
      assertThat(index.size()).isZero();
    }
  }

  @Test
  void neverSeesABlockThatWasNotThereWhileOthersComeAndGo() throws Exception {
    BlockIndex index = new BlockIndex(1000, 1, evictions::add);
    BlockIds stays = BlockBytes.ids(5, 500);
    BlockIds never = BlockBytes.ids(6, 2000);
    index.add(shards(1, stays, 0));
    CountDownLatch start = new CountDownLatch(1);
    try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
      Future<?> writer =
          threads.submit(
              () -> {
                start.await();
                for (int round = 0; round < 300; round++) {
                  index.add(shards(1, BlockBytes.ids(100 + round, 400), 0));
                  index.use(shards(1, stays, 0));
                }
                return null;
              });
      Future<Integer> full =
          threads.submit(
              () -> {
                start.countDown();
                int lookups = 0;
                while (!writer.isDone() || lookups == 0) {
                  assertThat(index.lookup(never)).isEqualTo(new BitSet());
                  assertThat(index.lookup(stays).cardinality()).isEqualTo(500);
                  lookups++;
                }
                return lookups;
              });
      Future<Integer> prefix =
          threads.submit(
              () -> {
                int lookups = 0;
                while (!writer.isDone() || lookups == 0) {
                  assertThat(index.run(never)).isZero();
                  assertThat(index.run(stays)).isEqualTo(500);
                  lookups++;
                }
                return lookups;
              });
      writer.get();
      assertThat(full.get()).isPositive();
      assertThat(prefix.get()).isPositive();
    }
    assertThat(index.size()).isEqualTo(1000);
  }

  private static Transfer shards(int shardCount, BlockIds ids, int... shardIndexes) {
    Transfer.Builder builder = Transfer.packed(BlockLayout.uniform(1, 1, shardCount));
    for (int block = 0; block < ids.size(); block++) {
      for (int shardIndex : shardIndexes) {
        builder.shard(ids, block, shardIndex).piece(MEMORY, shardIndex);
      }
    }
    return builder.build();
  }
}
