package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

final class DumpTest extends OverHeldNext {
  private static final BlockLayout MIDDLE = BlockLayout.uniform(1 << 18, 1 << 18, 1 << 18);
  private static final BlockLayout LARGE = BlockLayout.uniform(2 << 20, 2 << 20, 2 << 20);

  @Test
  void endsWhenTheBytesHaveLeftWhileTheNextStageStillWrites() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 2);
    TransferMemory memory = cache.dump(ids);
    // The engine reuses its memory; what is written is what was there.
    memory.scribble();
    cache.requireLoads(ids);
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
  void blockWhoseWriteFailedIsNoHitAndReachesFlushOnce() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 2);
    cache.dump(ids);
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
    cache.dump(ids.slice(0, 1));
    HeldNext.Held again = next.nextDump();
    assertThat(again.transfer.shardCount()).isEqualTo(2);
    again.takeAll();
  }

  @Test
  void blockThatTheNextStageLostAfterwardsIsNoHit() throws InterruptedException {
    FaultyStore full = new FaultyStore(new MemoryStore(), 1).at(1, Fault.Call.DUMP, Fault.DROP);
    TestCache cache = cache(LAYOUT, full, 8, Map.of());
    BlockIds ids = BlockBytes.ids(1, 2);
    cache.dump(ids);
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(2);
    assertThat(cache.store.lookup(ids).isEmpty()).isTrue();
    assertThat(cache.pool().inUse()).isZero();
  }

  @Test
  void nextStageThatThrowsFailsTheBlocks() throws InterruptedException {
    TestCache cache = cache(8);
    next.refuse(new StoreException("gone"));
    cache.dump(BlockBytes.ids(1, 2));
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(2);
    assertThat(flushed.cause()).hasMessage("gone");
    assertThat(cache.pool().inUse()).isZero();
  }

  @Test
  void waitsForANextStageWhoseQueueIsFull() throws InterruptedException {
    TestCache cache = cache(8);
    next.refuse(new QueueFullException("Held tasks", 1, "waiting_queue_depth"));
    BlockIds ids = BlockBytes.ids(1, 2);
    cache.dump(ids);
    assertThat(cache.store.flush(Duration.ofMillis(50)).pendingBlocks()).isEqualTo(2);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(2);
    next.refuse(null);
    next.nextDump().takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void blockThatTheNextStageHasIsNotMoved() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 3);
    next.has(ids.slice(1, 2));
    cache.dump(ids);
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
    TestCache cache = cache(MIDDLE, next, 48, Map.of());
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
    TestCache cache = cache(MIDDLE, next, 48, Map.of());
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
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 2);
    cache.dump(ids);
    cache.dump(ids);
    next.nextDump().takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    next.has(ids);
    cache.dump(ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(next.dumps).isEmpty();
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(4 * 4096);
    assertThat(next.lookups).as("each dump asks, as it may be lost by then").hasSize(3);
  }

  @Test
  void dumpDisplacesALoadThatIsUnderWay() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds ids = BlockBytes.ids(1, 1);
    Task load = cache.store.load(memory(ids).transfer());
    HeldNext.Held read = next.nextLoad();
    cache.dump(ids);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(1);
    read.endAll(ShardOutcome.MISSING, null);
    assertThat(load.await(PATIENCE).failedCount()).isEqualTo(2);
    cache.requireLoads(ids);
    next.nextDump().takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().inUse()).isEqualTo(2);
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void layersOfABlockAreAskedForOnce() throws InterruptedException {
    TestCache cache = cache(8);
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
    TestCache cache = cache(layout, next, 8 * 40, Map.of());
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
    TestCache cache = cache(LAYOUT, new MemoryStore(volume), 3, Map.of());
    BlockIds ids = BlockBytes.ids(1, 20);
    cache.dump(ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(volume.size()).isEqualTo(20);
    cache.requireLoads(ids);
    assertThat(cache.metrics.count("cache_evictions")).isGreaterThan(30);
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void poolFullOfUnwrittenShardsEndsTheTaskAtItsDeadline() throws InterruptedException {
    ManualClock clock = new ManualClock();
    TestCache cache = cache(2, Map.of("timeout_ms", 50), clock);
    cache.dump(BlockBytes.ids(1, 1));
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
    cache.dump(second);
    next.nextDump().takeAll();
  }

  /** One that failed in both stages counts once, also where the next one names only some. */
  @ParameterizedTest
  @CsvSource({"5, 0, 2, 5, 0", "2, 2, 5, 3, 2"})
  void blocksThatFailedInEitherStageCountOnce(int here, int from, int to, int below, int pending)
      throws InterruptedException {
    TestCache cache = cache(16);
    BlockIds ids = BlockBytes.ids(1, 5);
    next.onFlush = () -> new FlushResult(pending, ids.slice(from, to), below, null);
    cache.dump(ids);
    HeldNext.Held write = next.nextDump();
    for (int shard = 0; shard < write.transfer.shardCount(); shard++) {
      write.end(shard, shard / 2 < here ? ShardOutcome.FAILED : ShardOutcome.OK, null);
    }
    FlushResult flushed = cache.store.flush(PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(5);
    assertThat(flushed.failedBlocks()).isEqualTo(ids);
    assertThat(flushed.pendingBlocks()).isEqualTo(pending);
  }

  private static TransferMemory of(BlockLayout layout, BlockIds ids) {
    return TransferMemory.ofBlocks(layout, Placement.PACKED, ids).fill();
  }
}
