package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Map;
import java.util.Objects;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.BlockLender.Fetch;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.PromptStore;

/** A task takes some bytes of the heap for a shard, in arrays, and no object. */
@Timeout(120)
final class AllocationTest {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int SHARD_BYTES = 8192;
  private static final BlockLayout LAYOUT =
      BlockLayout.uniform(SHARD_BYTES, SHARD_BYTES, SHARD_BYTES);
  // The shards, their slots and places in arrays that grow by doubling, and a table of the blocks.
  private static final int MOST_BYTES = 128;
  private static final int FEW = 256;
  private static final int MANY = 8192;
  private static final int SLOTS = 2 * MANY;
  private static final int ROUNDS = 25;
  private static final long EACH_OTHER = 0x5555_5555_5555_5555L;

  enum Shape {
    HOT_LOAD,
    COLD_LOAD,
    LOAD_WITH_HITS_AND_MISSES_IN_TURNS,
    FETCH,
    DUMP,
    DUMP_OF_WHICH_EACH_OTHER_IS_BEHIND,
    DUMP_OF_WHICH_EACH_OTHER_IS_KNOWN_BEHIND;

    boolean isDump() {
      return compareTo(DUMP) >= 0;
    }
  }

  @ParameterizedTest
  @EnumSource
  void aTaskTakesSomeBytesMoreForEachShardMore(Shape shape) throws InterruptedException {
    requireBytes(shape);
  }

  private static void requireBytes(Shape shape) throws InterruptedException {
    try (Bench bench = new Bench(shape)) {
      bench.measure(shape, FEW);
      long few = bench.measure(shape, FEW);
      long many = bench.measure(shape, MANY);
      assertThat((many - few) / (double) (MANY - FEW))
          .as("%s of %d shards took %d bytes, of %d shards %d", shape, FEW, few, MANY, many)
          .isLessThan(MOST_BYTES);
    }
  }

  private static BlockIds eachOther(BlockIds ids) {
    return ids.select(
        0, BitSet.valueOf(LongStream.range(0, ids.size() / 64).map(_ -> EACH_OTHER).toArray()));
  }

  /** A cache above a store that takes nothing of the heap for a shard, and an engine. */
  private static final class Bench implements AutoCloseable {

    private final Arena arena = Arena.ofShared();
    private final MemoryRegion engine =
        MemoryRegion.host(arena.allocate((long) MANY * SHARD_BYTES, SHARD_BYTES));
    private final TestCache cache;
    private long nextId = 1;

    private Bench(Shape shape) {
      boolean knows = shape == Shape.DUMP_OF_WHICH_EACH_OTHER_IS_KNOWN_BEHIND;
      cache = new TestCache(LAYOUT, new PromptStore(knows), SLOTS, Map.of());
    }

    /** What the median of some tasks took, by all threads of the process. */
    private long measure(Shape shape, int shards) throws InterruptedException {
      long[] allocated = new long[ROUNDS];
      for (int round = 0; round < ROUNDS; round++) {
        // The next stage has those whose ids are even.
        BlockIds ids = fresh(shards, shape == Shape.DUMP ? 2 : 1);
        prepare(shape, ids);
        Transfer transfer = transfer(ids);
        long before = THREADS.getTotalThreadAllocatedBytes();
        if (shape.isDump()) {
          dump(transfer);
        } else if (shape == Shape.FETCH) {
          fetch(ids);
        } else {
          load(transfer);
        }
        allocated[round] = THREADS.getTotalThreadAllocatedBytes() - before;
      }
      Arrays.sort(allocated);
      return allocated[ROUNDS / 2];
    }

    /** Brings about what the task is to find. */
    private void prepare(Shape shape, BlockIds ids) throws InterruptedException {
      switch (shape) {
        case HOT_LOAD -> load(transfer(ids));
        case LOAD_WITH_HITS_AND_MISSES_IN_TURNS -> load(transfer(eachOther(ids)));
        default -> {}
      }
    }

    private void load(Transfer transfer) throws InterruptedException {
      cache.store.load(transfer).await(PATIENCE).requireOk();
    }

    private void fetch(BlockIds ids) throws InterruptedException {
      Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
      fetch.await(PATIENCE).requireOk();
      assertThat(fetch.lent()).hasSize(ids.size());
      cache.store.giveBack(fetch.lent());
    }

    private void dump(Transfer transfer) throws InterruptedException {
      cache.store.dump(transfer).await(PATIENCE).requireOk();
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    }

    private BlockIds fresh(int count, int step) {
      long[] words = new long[2 * count];
      for (int i = 0; i < count; i++) {
        words[2 * i] = step;
        words[2 * i + 1] = nextId;
        nextId += step;
      }
      return BlockIds.wrap(words);
    }

    private Transfer transfer(BlockIds ids) {
      Transfer.Builder builder = Transfer.packed(LAYOUT);
      for (int i = 0; i < ids.size(); i++) {
        builder.shard(ids, i, 0).piece(engine, (long) i * SHARD_BYTES);
      }
      return builder.build();
    }

    @Override
    public void close() {
      cache.close();
      arena.close();
    }
  }
}
