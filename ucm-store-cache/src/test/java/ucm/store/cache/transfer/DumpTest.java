package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

final class DumpTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(2048, 4096, 2 * 4096);
  private static final BlockLayout MIDDLE = BlockLayout.uniform(1 << 18, 1 << 18, 1 << 18);
  private static final BlockLayout LARGE = BlockLayout.uniform(2 << 20, 2 << 20, 2 << 20);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final HeldNext next = new HeldNext();
  private final List<TestCache> open = new ArrayList<>();

  @AfterEach
  void closes() {
    next.letGo();
    open.forEach(TestCache::close);
  }

  @Test
  void endsWhenTheBytesHaveLeftWhileTheNextStageStillWrites() throws InterruptedException {
    TestCache cache = cache(next, 8);
    BlockIds ids = BlockBytes.ids(1, 2);
    TransferMemory memory = dump(cache, ids);
    // The engine reuses its memory; what is written is what was there.
    memory.scribble();
    requireLoads(cache, ids);
    FlushResult pending = cache.store.flush(Duration.ZERO);
    assertThat(pending.ok()).isFalse();
    assertThat(pending.pendingBlocks()).isEqualTo(2);
    HeldNext.Held write = next.nextDump();
    assertThat(write.transfer.shardCount()).isEqualTo(4);
    assertThat(cache.pool().referenced()).isEqualTo(4);
    write.takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().referenced()).isZero();
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(4 * 4096);
  }

  @Test
  void goesOnInFewTransfersWhichGrowUpToAPartOfThePool() throws InterruptedException {
    TestCache cache = cache(LARGE, next, 96);
    Task dump = cache.store.dump(of(LARGE, BlockBytes.ids(1, 40)).transfer());
    List<Integer> shards = new ArrayList<>();
    for (int sum = 0; sum < 40; sum += shards.getLast()) {
      HeldNext.Held write = next.nextDump();
      write.takeAll();
      shards.add(write.transfer.shardCount());
    }
    dump.await(PATIENCE).requireOk();
    // Two are 4 MiB, and an eighth of the pool are twelve; the next stage is asked whether it has
    // 16
    // blocks first, and then for as many each time as before altogether.
    assertThat(shards).containsExactlyInAnyOrder(2, 4, 8, 2, 12, 4, 8);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void blockWhoseWriteFailedIsNoHitAndReachesFlushOnce() throws InterruptedException {
    TestCache cache = cache(next, 8);
    BlockIds ids = BlockBytes.ids(1, 2);
    dump(cache, ids);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(2);
    HeldNext.Held write = next.nextDump();
    StoreException cause = new StoreException("disk full");
    for (int shard = 0; shard < 4; shard++) {
      boolean fails = shard == 1;
      write.end(shard, fails ? ShardOutcome.FAILED : ShardOutcome.OK, fails ? cause : null);
    }
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(cache.store.lookup(ids).stream()).containsExactly(1);
    assertThat(flushed.failedCount()).isEqualTo(1);
    assertThat(flushed.failedBlocks()).isEqualTo(ids.slice(0, 1));
    assertThat(flushed.cause()).isSameAs(cause);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().inUse()).isEqualTo(2);
    // Dumped again, all of its shards go out again.
    dump(cache, ids.slice(0, 1));
    HeldNext.Held again = next.nextDump();
    assertThat(again.transfer.shardCount()).isEqualTo(2);
    again.takeAll();
  }

  @Test
  void blockThatTheNextStageLostAfterwardsIsNoHit() throws InterruptedException {
    FaultyStore full = new FaultyStore(new MemoryStore(), 1).at(1, Fault.Call.DUMP, Fault.DROP);
    TestCache cache = cache(full, 8);
    BlockIds ids = BlockBytes.ids(1, 2);
    dump(cache, ids);
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(2);
    assertThat(cache.store.lookup(ids).isEmpty()).isTrue();
    assertThat(cache.pool().inUse()).isZero();
  }

  @Test
  void nextStageThatThrowsFailsTheBlocks() throws InterruptedException {
    TestCache cache = cache(next, 8);
    next.refuse(new StoreException("gone"));
    dump(cache, BlockBytes.ids(1, 2));
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(2);
    assertThat(flushed.cause()).hasMessage("gone");
    assertThat(cache.pool().inUse()).isZero();
  }

  @Test
  void waitsForANextStageWhoseQueueIsFull() throws InterruptedException {
    TestCache cache = cache(next, 8);
    next.refuse(new QueueFullException("Held tasks", 1, "waiting_queue_depth"));
    BlockIds ids = BlockBytes.ids(1, 2);
    dump(cache, ids);
    assertThat(cache.store.flush(Duration.ofMillis(50)).pendingBlocks()).isEqualTo(2);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(2);
    next.refuse(null);
    next.nextDump().takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void blockThatTheNextStageHasIsNotMoved() throws InterruptedException {
    TestCache cache = cache(next, 8);
    BlockIds ids = BlockBytes.ids(1, 3);
    next.has(ids.slice(1, 2));
    dump(cache, ids);
    HeldNext.Held write = next.nextDump();
    assertThat(write.transfer.shardCount()).isEqualTo(4);
    write.takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().inUse()).isEqualTo(4);
    // Asked once, for each block once.
    assertThat(next.lookups).containsExactly(ids);
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(4 * 4096);
  }

  @Test
  void copiesWhatTheNextStageLacksWhileItIsAskedForMore() throws InterruptedException {
    TestCache cache = cache(MIDDLE, next, 48);
    BlockIds ids = BlockBytes.ids(1, 48);
    next.has(ids.slice(24, 40));
    CountDownLatch copied = new CountDownLatch(16);
    CountDownLatch answered = new CountDownLatch(1);
    next.onLookup = number -> requireEnd(number == 1 ? new CountDownLatch(0) : answered);
    Task task = cache.store.dump(of(MIDDLE, ids).transfer((_, _, _) -> copied.countDown()));
    requireEnd(copied);
    answered.countDown();
    assertThat(task.await(PATIENCE).ok()).isTrue();
    assertThat(next.lookups)
        .containsExactly(ids.slice(0, 16), ids.slice(16, 32), ids.slice(32, 48));
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(32 * MIDDLE.blockSize());
    Set<BlockIds> written = new HashSet<>();
    while (written.size() < 32) {
      HeldNext.Held write = next.nextDump();
      for (int i = 0; i < write.transfer.shardCount(); i++) {
        written.add(write.transfer.ids().slice(i, i + 1));
      }
      write.takeAll();
    }
    for (int i = 0; i < ids.size(); i++) {
      assertThat(written.contains(ids.slice(i, i + 1))).isEqualTo(i < 24 || i >= 40);
    }
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void nextStageThatDoesNotAnswerIsNotAskedForTheRest() throws InterruptedException {
    TestCache cache = cache(MIDDLE, next, 48);
    BlockIds ids = BlockBytes.ids(1, 48);
    next.has(ids.slice(47, 48));
    next.onLookup =
        number -> {
          throw new StoreException("gone");
        };
    assertThat(cache.store.dump(of(MIDDLE, ids).transfer()).await(PATIENCE).ok()).isTrue();
    assertThat(next.lookups).containsExactly(ids.slice(0, 16));
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(48 * MIDDLE.blockSize());
    next.letGo();
  }

  private static void requireEnd(CountDownLatch latch) {
    try {
      assertThat(latch.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void shardThatIsInThePoolIsNotMovedAgain() throws InterruptedException {
    TestCache cache = cache(next, 8);
    BlockIds ids = BlockBytes.ids(1, 2);
    dump(cache, ids);
    dump(cache, ids);
    next.nextDump().takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    next.has(ids);
    dump(cache, ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(next.dumps).isEmpty();
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(4 * 4096);
    assertThat(next.lookups).as("each dump asks, as it may be lost by then").hasSize(3);
  }

  @Test
  void dumpDisplacesALoadThatIsUnderWay() throws InterruptedException {
    TestCache cache = cache(next, 8);
    BlockIds ids = BlockBytes.ids(1, 1);
    Task load = cache.store.load(memory(ids).transfer());
    HeldNext.Held read = next.nextLoad();
    dump(cache, ids);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(1);
    read.endAll(ShardOutcome.MISSING, null);
    assertThat(load.await(PATIENCE).failedCount()).isEqualTo(2);
    requireLoads(cache, ids);
    next.nextDump().takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().inUse()).isEqualTo(2);
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void layersOfABlockAreAskedForOnce() throws InterruptedException {
    TestCache cache = cache(next, 8);
    BlockIds ids = BlockBytes.ids(1, 1);
    for (int shard = 0; shard < 2; shard++) {
      TransferMemory layer = TransferMemory.ofShards(LAYOUT, Placement.PACKED, ids, 0, shard);
      Task task = cache.store.dump(layer.fill().transfer());
      assertThat(task.await(PATIENCE).ok()).isTrue();
      assertThat(next.lookups).hasSize(1);
      assertThat(cache.pool().isComplete(ids, 0)).isEqualTo(shard == 1);
    }
    next.nextDump().takeAll();
  }

  @Test
  void manyShardsShareTransfersOfSomeMegabytes() throws InterruptedException {
    BlockLayout layout = BlockLayout.uniform(32 << 10, 64 << 10, 8 * (64 << 10));
    TestCache cache = cache(layout, next, 8 * 40);
    BlockIds ids = BlockBytes.ids(1, 40);
    TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.REGION_PER_TENSOR, ids);
    assertThat(cache.store.dump(memory.fill().transfer()).await(PATIENCE).ok()).isTrue();
    int shards = 0;
    for (int writes = 0; writes < 5; writes++) {
      HeldNext.Held write = next.nextDump();
      assertThat(write.transfer.byteSize()).isEqualTo(4 << 20);
      shards += write.transfer.shardCount();
      write.takeAll();
    }
    assertThat(shards).isEqualTo(8 * 40);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void taskOfMoreShardsThanThePoolHasSlotsEnds() throws InterruptedException {
    MemoryStore.Volume volume = new MemoryStore.Volume();
    TestCache cache = cache(new MemoryStore(volume), 3);
    BlockIds ids = BlockBytes.ids(1, 20);
    dump(cache, ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(volume.size()).isEqualTo(20);
    requireLoads(cache, ids);
    assertThat(cache.metrics.count("cache_evictions")).isGreaterThan(30);
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void poolFullOfUnwrittenShardsEndsTheTaskAtItsDeadline() throws InterruptedException {
    ManualClock clock = new ManualClock();
    TestCache cache = new TestCache(LAYOUT, next, 2, Map.of("timeout_ms", 50), clock);
    open.add(cache);
    dump(cache, BlockBytes.ids(1, 1));
    HeldNext.Held hanging = next.nextDump();
    BlockIds second = BlockBytes.ids(2, 1);
    Task waiting = cache.store.dump(memory(second).fill().transfer());
    cache.awaitWanting();
    clock.advance(Duration.ofMillis(50));
    TransferResult result = waiting.await(PATIENCE);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(result.cause()).hasMessageContaining("cache_buffer_capacity_gb");
    hanging.takeAll();
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(flushed.failedBlocks()).isEqualTo(second);
    dump(cache, second);
    next.nextDump().takeAll();
  }

  @Test
  void evictsTheBlockThatWasUsedLeastRecently() throws InterruptedException {
    TestCache cache = cache(null, 6);
    BlockIds ids = BlockBytes.ids(1, 4);
    dump(cache, ids.slice(0, 1));
    dump(cache, ids.slice(1, 2));
    dump(cache, ids.slice(2, 3));
    requireLoads(cache, ids.slice(0, 1));
    dump(cache, ids.slice(3, 4));
    assertThat(cache.store.lookup(ids).stream()).containsExactly(0, 2, 3);
    assertThat(cache.metrics.count("cache_evictions")).isEqualTo(2);
  }

  private TransferMemory dump(TestCache cache, BlockIds ids) throws InterruptedException {
    TransferMemory memory = memory(ids).fill();
    TransferResult result = cache.store.dump(memory.transfer()).await(PATIENCE);
    assertThat(result.ok()).as("dump: %s", result).isTrue();
    return memory;
  }

  private static void requireLoads(TestCache cache, BlockIds ids) throws InterruptedException {
    TransferMemory memory = memory(ids);
    TransferResult result = cache.store.load(memory.transfer()).await(PATIENCE);
    assertThat(result.ok()).as("load: %s", result).isTrue();
    memory.check();
  }

  private TestCache cache(Store next, int slots) {
    return cache(LAYOUT, next, slots);
  }

  private TestCache cache(BlockLayout layout, Store next, int slots) {
    TestCache cache = new TestCache(layout, next, slots, Map.of());
    open.add(cache);
    return cache;
  }

  private static TransferMemory of(BlockLayout layout, BlockIds ids) {
    return TransferMemory.ofBlocks(layout, Placement.PACKED, ids).fill();
  }

  private static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
  }
}
