package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.PatternNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;

/**
 * Tasks of all shapes side by side: each moves its own bytes and no other, touches no memory after its
 * end, and leaves no slot referenced.
 */
@Timeout(180)
final class TaskStressTest {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int ENGINES = 3;
  private static final int BLOCKS = 60;

  @Test
  void tasksThatWaitAreNotDisturbedByThoseThatComeAndGo() throws InterruptedException {
    BlockLayout layout = BlockLayout.uniform(2048, 4096, 2 * 4096);
    HeldNext next = new HeldNext();
    try (TestCache cache = new TestCache(layout, next, 64, Map.of())) {
      BlockIds hot = BlockBytes.ids(1, 8);
      TransferMemory brought = whole(layout, hot);
      Task bring = cache.store.load(brought.transfer());
      next.nextLoad().serveAll();
      bring.await(PATIENCE).requireOk();

      TransferMemory side = whole(layout, BlockBytes.ids(2, 6));
      Task sideBySide = cache.store.load(side.transfer());
      HeldNext.Held sideRead = next.nextLoad();
      TransferMemory apart = alternating(layout, hot, BlockBytes.ids(3, 4));
      Task farApart = cache.store.load(apart.transfer());
      HeldNext.Held apartRead = next.nextLoad();
      BlockIds dumped = BlockBytes.ids(4, 5);
      Task dump = cache.store.dump(whole(layout, dumped).fill().transfer());
      HeldNext.Held write = next.nextDump();
      dump.await(PATIENCE).requireOk();

      for (int round = 0; round < 40; round++) {
        TransferMemory again = whole(layout, hot.slice(round % 4, round % 4 + 3));
        cache.store.load(again.transfer()).await(PATIENCE).requireOk();
        again.check();
        Task other =
            cache.store.dump(whole(layout, BlockBytes.ids(100 + round, 1)).fill().transfer());
        next.nextDump().takeAll();
        other.await(PATIENCE).requireOk();
      }

      for (int shard = apartRead.transfer.shardCount() - 1; shard >= 0; shard--) {
        apartRead.serve(shard);
      }
      sideRead.serveAll();
      write.takeAll();
      farApart.await(PATIENCE).requireOk();
      sideBySide.await(PATIENCE).requireOk();
      apart.check();
      side.check();
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
      cache.awaitUnreferenced();
      assertThat(next.lookups.getFirst()).isEqualTo(dumped);
    }
  }

  @Test
  void whatTheNextStageRefusedIsWrittenLaterAsItIs() throws InterruptedException {
    BlockLayout layout = BlockLayout.uniform(2048, 4096, 2 * 4096);
    FaultyStore full = new FaultyStore(new PatternNext(0), 1);
    for (int number = 1; number <= 20; number++) {
      full.at(number, Call.DUMP, Fault.QUEUE_FULL);
    }
    try (TestCache cache = new TestCache(layout, full, 64, Map.of())) {
      Task dump = cache.store.dump(whole(layout, BlockBytes.ids(1, 6)).fill().transfer());
      dump.await(PATIENCE).requireOk();
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
      assertThat(full.struck(Call.DUMP, Fault.QUEUE_FULL)).isEqualTo(20);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, 512, 150, 60000",
    "2, 512, 150, 5",
    "3, 524288, 10, 60000",
    "4, 524288, 10, 20",
  })
  void tasksOfAllShapesMoveTheRightBytes(long seed, int shardSize, int tasks, int timeoutMs)
      throws Exception {
    PatternNext next = new PatternNext(300);
    stress(next, next, seed, shardSize, tasks, timeoutMs);
  }

  @ParameterizedTest
  @CsvSource({
    "5, 512, 100, 60000",
    "6, 512, 100, 5",
    "7, 524288, 10, 60000",
    "8, 524288, 10, 20",
  })
  void andSoTheyDoWhenTheNextStageFails(long seed, int shardSize, int tasks, int timeoutMs)
      throws Exception {
    PatternNext last = new PatternNext(300);
    FaultyStore next =
        new FaultyStore(last, seed)
            .rate(Call.LOAD, Fault.FAIL, 0.03)
            .rate(Call.LOAD, Fault.MISS, 0.03)
            .rate(Call.LOAD, Fault.THROW, 0.03)
            .rate(Call.LOAD, Fault.QUEUE_FULL, 0.03)
            .rate(Call.LOAD, Fault.REORDER, 0.3)
            .rate(Call.DUMP, Fault.FAIL, 0.02)
            .rate(Call.DUMP, Fault.THROW, 0.03)
            .rate(Call.DUMP, Fault.QUEUE_FULL, 0.2)
            .rate(Call.DUMP, Fault.REORDER, 0.3)
            .rate(Call.LOOKUP, Fault.MISS, 0.1);
    stress(next, last, seed, shardSize, tasks, timeoutMs);
  }

  private static void stress(
      Store next, PatternNext last, long seed, int shardSize, int tasks, int timeoutMs)
      throws Exception {
    BlockLayout layout = BlockLayout.uniform(shardSize / 2, shardSize, 4L * shardSize);
    Map<String, Object> settings = Map.of("timeout_ms", timeoutMs);
    List<TransferMemory> givenBack = new ArrayList<>();
    try (TestCache cache = new TestCache(layout, next, 2 * BLOCKS, settings);
        ExecutorService engines = Executors.newFixedThreadPool(ENGINES)) {
      List<Future<List<TransferMemory>>> all = new ArrayList<>();
      for (int engine = 0; engine < ENGINES; engine++) {
        Random random = new Random(ENGINES * seed + engine);
        all.add(engines.submit(() -> drive(cache, layout, random, tasks)));
      }
      for (Future<List<TransferMemory>> one : all) {
        givenBack.addAll(one.get());
      }
      assertThat(cache.metrics.count("cache_load_bytes")).isPositive();
      assertThat(cache.metrics.count("cache_dump_bytes")).isPositive();
      cache.store.flush(PATIENCE);
      assertThat(cache.store.flush(PATIENCE).pendingBlocks()).isZero();
      assertThat(cache.opened().traffic.awaitNone(PATIENCE.toNanos())).isZero();
      cache.awaitUnreferenced();
    }
    assertThat(last.wrong()).as("dumped shards with wrong bytes").isZero();
    givenBack.forEach(TransferMemory::checkScribbled);
  }

  /**
   * Tasks of one engine, two at a time; returns the memory of all of them, scribbled over when they
   * ended.
   */
  private static List<TransferMemory> drive(
      TestCache cache, BlockLayout layout, Random random, int tasks) throws InterruptedException {
    List<TransferMemory> used = new ArrayList<>();
    for (int round = 0; round < tasks; round++) {
      TransferMemory dumped = shape(layout, random).fill();
      TransferMemory loaded = shape(layout, random).scribble();
      Task dump = cache.store.dump(dumped.transfer());
      Task load = cache.store.load(loaded.transfer());
      TransferResult result = load.await(PATIENCE);
      for (int shard = 0; shard < loaded.shardCount(); shard++) {
        if (result.outcome(shard) == ShardOutcome.OK) {
          loaded.check(shard);
        }
      }
      loaded.checkGuards();
      dump.await(PATIENCE);
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
      return whole(layout, all.slice(first, first + count));
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

  private static TransferMemory whole(BlockLayout layout, BlockIds ids) {
    return TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids);
  }

  /** The first shard of a block of one list, then of the other, as long as the second lasts. */
  private static TransferMemory alternating(BlockLayout layout, BlockIds some, BlockIds others) {
    long[] words = new long[4 * others.size()];
    for (int i = 0; i < others.size(); i++) {
      words[4 * i] = some.high(i);
      words[4 * i + 1] = some.low(i);
      words[4 * i + 2] = others.high(i);
      words[4 * i + 3] = others.low(i);
    }
    int[] first = new int[2 * others.size()];
    return new TransferMemory(layout, Placement.SCATTERED, BlockIds.wrap(words), first);
  }
}
