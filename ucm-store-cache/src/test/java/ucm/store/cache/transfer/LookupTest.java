package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.Map;
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
  void schedulerAsksTheNextStageAndMovesNothing() {
    BlockIds ids = BlockBytes.ids(1, 3);
    next.has(ids.slice(0, 2));
    try (TestCache cache = new TestCache(LAYOUT, next, 8, Map.of("device_id", -1))) {
      assertThat(cache.store.opened()).isNull();
      assertThat(cache.store.lookup(ids).stream()).containsExactly(0, 1);
      assertThat(cache.store.lookupPrefix(ids)).isEqualTo(1);
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
