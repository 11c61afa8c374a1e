package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.MemoryStore;

final class LookupTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 2 * 4096);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final HeldNext next = new HeldNext();

  @Test
  void asksTheNextStageOnceForWhatThePoolLacks() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 32, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, 6);
      bring(cache, ids.slice(1, 3));
      next.has(ids.slice(4, 5));
      assertThat(cache.store.lookup(ids).stream()).containsExactly(1, 2, 4);
      assertThat(next.lookups).hasSize(1);
      BlockIds asked = next.lookups.getFirst();
      assertThat(asked.size()).isEqualTo(4);
      assertThat(asked.hex(0)).isEqualTo(ids.hex(0));
      assertThat(asked.hex(3)).isEqualTo(ids.hex(5));
    }
  }

  @Test
  void doesNotAskTheNextStageWhenThePoolHasEverything() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 32, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, 6);
      bring(cache, ids);
      assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(6);
      assertThat(cache.store.lookupPrefix(ids)).isEqualTo(5);
      assertThat(next.lookups).isEmpty();
    }
  }

  @Test
  void prefixRunsThroughPoolAndNextStageInTurn() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 32, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, 9);
      bring(cache, ids.slice(0, 2));
      next.has(ids.slice(2, 4));
      bring(cache, ids.slice(4, 5));
      next.has(ids.slice(5, 7));
      // Block 7 is nowhere.
      bring(cache, ids.slice(8, 9));
      assertThat(cache.store.lookupPrefix(ids)).isEqualTo(6);
      assertThat(cache.store.lookupPrefix(ids.slice(2, 9))).isEqualTo(4);
      assertThat(cache.store.lookupPrefix(ids.slice(7, 9))).isEqualTo(-1);
      assertThat(cache.store.lookupPrefix(ids.slice(8, 9))).isZero();
      assertThat(cache.store.lookupPrefix(BlockIds.empty())).isEqualTo(-1);
    }
  }

  @Test
  void failedLoadDoesNotPoisonLookups() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 32, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, 6);
      Task task = cache.store.load(memory(ids).transfer());
      HeldNext.Held read = next.nextLoad();
      assertThat(cache.store.lookup(ids).isEmpty()).as("while it is loaded").isTrue();
      read.endAll(ShardOutcome.MISSING, null);
      assertThat(task.await(PATIENCE).okCount()).isZero();
      assertThat(cache.store.lookup(ids).isEmpty()).as("afterwards").isTrue();
      assertThat(cache.store.lookupPrefix(ids)).isEqualTo(-1);
    }
  }

  @Test
  void prefetchedBlocksAreServedWithoutTheNextStage() throws InterruptedException {
    MemoryStore.Volume volume = new MemoryStore.Volume();
    BlockIds ids = BlockBytes.ids(1, 4);
    try (TestCache first = new TestCache(LAYOUT, new MemoryStore(volume), 32, Map.of())) {
      first.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    }
    assertThat(volume.size()).isEqualTo(4);
    try (TestCache second = new TestCache(LAYOUT, new MemoryStore(volume), 32, Map.of())) {
      second.store.prefetch(BlockIds.empty());
      second.store.prefetch(BlockBytes.ids(2, 100));
      second.store.prefetch(ids);
      // The dispatcher does its jobs in order, and this next stage loads on the thread that asks.
      CountDownLatch done = new CountDownLatch(1);
      second.opened().dispatcher.submit(done::countDown);
      assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
      for (int i = 0; i < 4; i++) {
        volume.remove(ids, i);
      }
      assertThat(second.store.lookupPrefix(ids)).isEqualTo(3);
      TransferMemory loaded = memory(ids);
      second.store.load(loaded.transfer()).await(PATIENCE).requireOk();
      loaded.check();
      assertThat(second.metrics.count("cache_miss_shards")).isZero();
      assertThat(second.pool().referenced()).isZero();
    }
  }

  @Test
  void prefetchTakesAtMostHalfOfThePool() throws InterruptedException {
    try (TestCache cache = new TestCache(LAYOUT, next, 8, Map.of())) {
      BlockIds ids = BlockBytes.ids(1, 100);
      next.has(ids);
      cache.store.prefetch(ids);
      cache.store.prefetch(ids.slice(50, 100));
      HeldNext.Held read = next.nextLoad();
      assertThat(read.transfer.shardCount()).isEqualTo(4);
      read.serveAll();
      next.letGo();
    }
  }

  @Test
  void schedulerAsksTheNextStageAndMovesNothing() {
    BlockIds ids = BlockBytes.ids(1, 3);
    next.has(ids.slice(0, 2));
    try (TestCache cache = new TestCache(LAYOUT, next, 8, Map.of("device_id", -1))) {
      assertThat(cache.store.opened()).isNull();
      assertThat(cache.store.lookup(ids).stream()).containsExactly(0, 1);
      assertThat(cache.store.lookupPrefix(ids)).isEqualTo(1);
      cache.store.prefetch(ids);
      assertThatThrownBy(() -> cache.store.load(memory(ids).transfer()))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("device_id");
      assertThatThrownBy(() -> cache.store.dump(memory(ids).transfer()))
          .isInstanceOf(StoreException.class);
      assertThat(next.loads).isEmpty();
    }
  }

  private void bring(TestCache cache, BlockIds ids) throws InterruptedException {
    Task task = cache.store.load(memory(ids).transfer());
    next.nextLoad().serveAll();
    task.await(PATIENCE).requireOk();
  }

  private static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids);
  }
}
