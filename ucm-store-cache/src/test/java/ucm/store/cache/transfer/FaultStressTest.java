package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

/** Two engines on one small pool, above a next stage that fails, drops, delays and reorders. */
@Timeout(180)
final class FaultStressTest {

  private static final BlockLayout LAYOUT = BlockLayout.of(new long[] {1001, 37, 4099}, 3 * 5137);
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int BLOCKS = 40;
  private static final int TASKS = 150;

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void everyLoadThatEndsWellHasTheRightBytesAndNothingLeaks(long seed) throws Exception {
    try (ExecutorService delays = Executors.newSingleThreadExecutor();
        ExecutorService engines = Executors.newFixedThreadPool(2)) {
      FaultyStore next =
          new FaultyStore(new MemoryStore(), seed)
              .rate(Call.LOAD, Fault.FAIL, 0.05)
              .rate(Call.LOAD, Fault.MISS, 0.05)
              .rate(Call.LOAD, Fault.CORRUPT, 0.05)
              .rate(Call.LOAD, Fault.THROW, 0.02)
              .rate(Call.LOAD, Fault.QUEUE_FULL, 0.02)
              .rate(Call.LOAD, Fault.DELAY, 0.3)
              .rate(Call.LOAD, Fault.REORDER, 0.5)
              .rate(Call.DUMP, Fault.FAIL, 0.02)
              .rate(Call.DUMP, Fault.DROP, 0.02)
              .rate(Call.DUMP, Fault.THROW, 0.02)
              .rate(Call.DUMP, Fault.QUEUE_FULL, 0.05)
              .rate(Call.DUMP, Fault.DELAY, 0.3)
              .rate(Call.LOOKUP, Fault.MISS, 0.1)
              .delayedBy(delays);
      // Slots for a fifth of the blocks.
      Map<String, Object> policy = Map.of("cache_policy", CachePolicy.words()[(int) seed % 3]);
      try (TestCache cache = new TestCache(LAYOUT, next, BLOCKS * 3 / 5, policy)) {
        Future<Integer> first = engines.submit(() -> drive(cache, new Random(seed)));
        Future<Integer> second = engines.submit(() -> drive(cache, new Random(-seed)));
        int loaded = first.get() + second.get();
        assertThat(loaded).as("shards loaded well; seed %d", seed).isGreaterThan(TASKS);
        cache.store.flush(PATIENCE);
        assertThat(cache.store.flush(PATIENCE).pendingBlocks()).isZero();
        // A load has ended when its last shard is missing; its slots come back with the next
        // stage's
        // task.
        assertThat(cache.opened().traffic.awaitNone(PATIENCE.toNanos())).isZero();
        cache.awaitUnreferenced();
        for (Fault fault : new Fault[] {Fault.FAIL, Fault.THROW, Fault.QUEUE_FULL, Fault.DELAY}) {
          assertThat(next.struck(Call.LOAD, fault) + next.struck(Call.DUMP, fault))
              .as("%s; seed %d", fault, seed)
              .isPositive();
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void memoryIsNotTouchedAfterDeadlinesThatPassInTheMiddle(long seed) throws Exception {
    Random random = new Random(seed);
    FaultyStore next =
        new FaultyStore(new MemoryStore(), seed)
            .rate(Call.LOAD, Fault.DELAY, 0.5)
            .rate(Call.LOAD, Fault.REORDER, 0.5)
            .rate(Call.DUMP, Fault.DELAY, 0.5)
            .delayedBy(
                late ->
                    CompletableFuture.delayedExecutor(random.nextInt(9), TimeUnit.MILLISECONDS)
                        .execute(late));
    Map<String, Object> hasty = Map.of("timeout_ms", 4);
    List<TransferMemory> givenBack = new ArrayList<>();
    try (TestCache cache = new TestCache(LAYOUT, next, BLOCKS * 3 / 5, hasty)) {
      BlockIds all = BlockBytes.ids(7, BLOCKS);
      for (int round = 0; round < TASKS; round++) {
        int start = random.nextInt(BLOCKS - 6);
        BlockIds ids = all.slice(start, start + 1 + random.nextInt(6));
        TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids);
        boolean dumps = round % 3 == 0;
        Task task =
            dumps
                ? cache.store.dump(memory.fill().transfer())
                : cache.store.load(memory.transfer());
        TransferResult result = task.await(PATIENCE);
        for (int shard = 0; shard < memory.shardCount(); shard++) {
          if (result.outcome(shard) == ShardOutcome.OK) {
            memory.check(shard);
          }
        }
        givenBack.add(memory.scribble());
      }
      assertThat(cache.metrics.count("cache_expired_shards")).isPositive();
      assertThat(cache.metrics.count("cache_load_bytes")).isPositive();
      cache.store.flush(PATIENCE);
      assertThat(cache.opened().traffic.awaitNone(PATIENCE.toNanos())).isZero();
      cache.awaitUnreferenced();
    }
    givenBack.forEach(TransferMemory::checkScribbled);
  }

  private static int drive(TestCache cache, Random random) throws InterruptedException {
    BlockIds all = BlockBytes.ids(7, BLOCKS);
    int loaded = 0;
    for (int round = 0; round < TASKS; round++) {
      int start = random.nextInt(BLOCKS - 1);
      BlockIds ids = all.slice(start, start + 1 + random.nextInt(Math.min(12, BLOCKS - start)));
      TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
      if (random.nextInt(3) == 0) {
        Task task = cache.store.dump(memory.fill().transfer());
        assertThat(task.await(PATIENCE).ok()).isTrue();
        memory.scribble();
      } else {
        BitSet well = new BitSet();
        TransferResult result = cache.store.load(memory.scribble().transfer()).await(PATIENCE);
        for (int shard = 0; shard < memory.shardCount(); shard++) {
          if (result.outcome(shard) == ShardOutcome.OK) {
            well.set(shard);
            memory.check(shard);
          }
        }
        memory.checkGuards();
        loaded += well.cardinality();
      }
    }
    return loaded;
  }
}
