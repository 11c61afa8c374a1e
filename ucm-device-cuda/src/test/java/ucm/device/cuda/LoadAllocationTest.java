package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.Transfer;
import ucm.store.cache.CacheStore;
import ucm.testkit.BlockBytes;
import ucm.testkit.PromptStore;

/**
 * What a load into memory of a GPU takes of the heap where the pool has each other block: some bits for each
 * shard, though what comes from the next stage is put together as it arrives.
 */
@Timeout(60)
final class LoadAllocationTest {

  private static final int ROUNDS = 25;
  private static final int FEW = 32;
  private static final int MANY = 8192;
  private static final int SHARDS = 2;
  private static final int SHARD_BYTES = 4096;
  // Of the arrays that a task owns.
  private static final int MOST_BYTES = 96;

  private int seed;

  @Test
  void takesSomeBytesAndNoObjectForEachShardMore() throws InterruptedException {
    try (DeviceBench bench = new DeviceBench()) {
      double gib = 2.0 * MANY * SHARDS * SHARD_BYTES / (1L << 30);
      Store cache =
          bench.open(
              new CacheStore(),
              new PromptStore(),
              Map.of("cache_buffer_capacity_gb", gib, "cache_device", "cuda"));
      MemoryRegion memory = bench.engine.allocate((long) MANY * SHARDS * SHARD_BYTES);
      try {
        measure(cache, memory, FEW);
        long few = measure(cache, memory, FEW);
        long many = measure(cache, memory, MANY);
        assertThat((many - few) / (double) (SHARDS * (MANY - FEW)))
            .as("%d blocks took %d bytes, %d blocks %d", FEW, few, MANY, many)
            .isLessThan(MOST_BYTES);
      } finally {
        bench.engine.free(memory);
      }
    }
  }

  /** What the median of some loads took, by all threads of the process. */
  private long measure(Store cache, MemoryRegion memory, int blocks) throws InterruptedException {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    BitSet odd = new BitSet();
    for (int i = 1; i < blocks; i += 2) {
      odd.set(i);
    }
    long[] allocated = new long[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
      BlockIds ids = BlockBytes.ids(++seed, blocks);
      load(cache, transfer(ids.select(0, odd), memory));
      Transfer all = transfer(ids, memory);
      long before = threads.getTotalThreadAllocatedBytes();
      load(cache, all);
      allocated[round] = threads.getTotalThreadAllocatedBytes() - before;
    }
    Arrays.sort(allocated);
    return allocated[ROUNDS / 2];
  }

  private static void load(Store cache, Transfer transfer) throws InterruptedException {
    cache.load(transfer).await(DeviceBench.PATIENCE).requireOk();
  }

  private static Transfer transfer(BlockIds ids, MemoryRegion memory) {
    Transfer.Builder builder = Transfer.packed(DeviceBench.LAYOUT);
    for (int i = 0; i < ids.size(); i++) {
      for (int shard = 0; shard < SHARDS; shard++) {
        builder.shard(ids, i, shard).piece(memory, (long) (SHARDS * i + shard) * SHARD_BYTES);
      }
    }
    return builder.build();
  }
}
