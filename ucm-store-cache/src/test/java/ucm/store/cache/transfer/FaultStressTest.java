package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
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
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Task;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.fixture.PatternNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;

/**
 * Engines on one small pool, with tasks of all shapes side by side, above a next stage that fails, drops, delays
 * and reorders. Each task moves its own bytes and no other, touches no memory after its end, and leaves no slot
 * referenced.
 */
@Timeout(180)
final class FaultStressTest {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final BlockLayout ODD = BlockLayout.of(new long[] {1001, 37, 4099}, 3 * 5137);
  private static final int ENGINES = 3;
  private static final int BLOCKS = 60;

  private final PatternNext last = new PatternNext(300);

  /** With shards of a size, or of three odd tensors. */
  @ParameterizedTest
  @CsvSource({
    "1, 0, 100, 60000, true",
    "2, 0, 100, 60000, true",
    "3, 0, 100, 60000, true",
    "4, 512, 150, 60000, false",
    "5, 512, 150, 5, false",
    "6, 512, 100, 60000, true",
    "7, 512, 100, 5, true",
    "8, 524288, 10, 60000, false",
    "9, 524288, 10, 20, false",
    "10, 524288, 10, 60000, true",
    "11, 524288, 10, 20, true",
  })
  void everyLoadThatEndsWellHasTheRightBytesAndNothingLeaks(
      long seed, int shardSize, int tasks, int timeoutMs, boolean fails) throws Exception {
    FaultyStore next = new FaultyStore(last, seed);
    if (fails) {
      next.rate(Call.LOAD, Fault.FAIL, 0.05)
          .rate(Call.LOAD, Fault.MISS, 0.05)
          .rate(Call.LOAD, Fault.CORRUPT, 0.05)
          .rate(Call.LOAD, Fault.THROW, 0.03)
          .rate(Call.LOAD, Fault.QUEUE_FULL, 0.03)
          .rate(Call.LOAD, Fault.DELAY, 0.3)
          .rate(Call.LOAD, Fault.REORDER, 0.5)
          .rate(Call.DUMP, Fault.FAIL, 0.02)
          .rate(Call.DUMP, Fault.DROP, 0.02)
          .rate(Call.DUMP, Fault.THROW, 0.03)
          .rate(Call.DUMP, Fault.QUEUE_FULL, 0.2)
          .rate(Call.DUMP, Fault.DELAY, 0.3)
          .rate(Call.DUMP, Fault.REORDER, 0.3)
          .rate(Call.LOOKUP, Fault.MISS, 0.1);
    }
    BlockLayout layout =
        shardSize == 0 ? ODD : BlockLayout.uniform(shardSize / 2, shardSize, 4L * shardSize);
    stress(next, seed, layout, tasks, timeoutMs);
    for (Fault fault : new Fault[] {Fault.FAIL, Fault.THROW, Fault.QUEUE_FULL, Fault.DELAY}) {
      assertThat(next.struck(Call.LOAD, fault) + next.struck(Call.DUMP, fault) > 0)
          .as("%s; seed %d", fault, seed)
          .isEqualTo(fails);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void memoryIsNotTouchedAfterDeadlinesThatPassInTheMiddle(long seed) throws Exception {
    FaultyStore next =
        new FaultyStore(last, seed)
            .rate(Call.LOAD, Fault.DELAY, 0.5)
            .rate(Call.LOAD, Fault.REORDER, 0.5)
            .rate(Call.DUMP, Fault.DELAY, 0.5);
    assertThat(stress(next, seed, ODD, 50, 4)).as("expired shards").isPositive();
  }

  /** How many shards have expired. */
  private long stress(FaultyStore next, long seed, BlockLayout layout, int tasks, int timeoutMs)
      throws Exception {
    Random delays = new Random(seed);
    next.delayedBy(
        late ->
            CompletableFuture.delayedExecutor(delays.nextInt(9), TimeUnit.MILLISECONDS)
                .execute(late));
    Map<String, Object> settings =
        Map.of("timeout_ms", timeoutMs, "cache_policy", CachePolicy.words()[(int) seed % 3]);
    List<TransferMemory> givenBack = new ArrayList<>();
    long expired;
    try (TestCache cache = new TestCache(layout, next, 2 * BLOCKS, settings);
        ExecutorService engines = Executors.newFixedThreadPool(ENGINES)) {
      List<Future<List<TransferMemory>>> all = new ArrayList<>();
      for (int engine = 0; engine < ENGINES; engine++) {
        Random random = new Random(ENGINES * seed + engine);
        all.add(engines.submit(() -> drive(cache, random, tasks, timeoutMs > 1000)));
      }
      for (Future<List<TransferMemory>> one : all) {
        givenBack.addAll(one.get());
      }
      assertThat(cache.metrics.count("cache_load_bytes")).isPositive();
      assertThat(cache.metrics.count("cache_dump_bytes")).isPositive();
      cache.store.flush(PATIENCE);
      assertThat(cache.store.flush(PATIENCE).pendingBlocks()).isZero();
      // A load has ended when its last shard is missing; its slots come back with the next stage's
      // task.
      assertThat(cache.opened().traffic.awaitNone(PATIENCE.toNanos())).isZero();
      cache.awaitUnreferenced();
      expired = cache.metrics.count("cache_expired_shards");
    }
    assertThat(last.wrong()).as("dumped shards with wrong bytes").isZero();
    givenBack.forEach(TransferMemory::checkScribbled);
    return expired;
  }

  /**
   * Tasks of one engine, two at a time; returns the memory of all of them, scribbled over when they
   * ended.
   */
  private static List<TransferMemory> drive(
      TestCache cache, Random random, int tasks, boolean isPatient) throws InterruptedException {
    List<TransferMemory> used = new ArrayList<>();
    for (int round = 0; round < tasks; round++) {
      TransferMemory dumped = shape(cache.layout, random).fill();
      TransferMemory loaded = shape(cache.layout, random).scribble();
      Task dump = cache.store.dump(dumped.transfer());
      Task load = cache.store.load(loaded.transfer());
      loaded.check(load.await(PATIENCE));
      loaded.checkGuards();
      assertThat(dump.await(PATIENCE).ok() || !isPatient).as("the bytes have left").isTrue();
      used.add(loaded.scribble());
      used.add(dumped.scribble());
    }
    return used;
  }

  /** Blocks in a row, one layer of them, or any shards, some of them twice. */
  private static TransferMemory shape(BlockLayout layout, Random random) {
    BlockIds all = BlockBytes.ids(7, BLOCKS);
    int shards = layout.shardCount();
    int count = 1 + random.nextInt(12);
    int first = random.nextInt(BLOCKS - count);
    int kind = random.nextInt(3);
    if (kind == 0) {
      return TransferMemory.ofBlocks(layout, Placement.SCATTERED, all.slice(first, first + count));
    }
    long[] words = new long[2 * count];
    int[] indexes = new int[count];
    int layer = random.nextInt(shards);
    for (int i = 0; i < count; i++) {
      int block = kind == 1 ? first + i : first + random.nextInt(count);
      words[2 * i] = all.high(block);
      words[2 * i + 1] = all.low(block);
      indexes[i] = kind == 1 ? layer : random.nextInt(shards);
    }
    return new TransferMemory(layout, Placement.SCATTERED, BlockIds.wrap(words), indexes);
  }
}
