package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;

final class LookupTest extends OverHeldNext {
  @Test
  void asksTheNextStageOnceForWhatThePoolLacks() throws InterruptedException {
    TestCache cache = cache(32);
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

  @Test
  void doesNotAskTheNextStageWhenThePoolHasEverything() throws InterruptedException {
    TestCache cache = cache(32);
    BlockIds ids = BlockBytes.ids(1, 6);
    bring(cache, ids);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(6);
    assertThat(cache.store.lookupPrefix(ids)).isEqualTo(5);
    assertThat(next.lookups).isEmpty();
  }

  @Test
  void prefixRunsThroughPoolAndNextStageInTurn() throws InterruptedException {
    TestCache cache = cache(32);
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

  @Test
  void failedLoadDoesNotPoisonLookups() throws InterruptedException {
    TestCache cache = cache(32);
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
