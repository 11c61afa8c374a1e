package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;

/** What stores of one process that share a pool owe one another. */
@Timeout(120)
final class SharedPoolTest extends OverHeldNext {
  private final List<HeldNext> nextStages = new ArrayList<>();

  @AfterEach
  void letsGo() {
    nextStages.forEach(HeldNext::letGo);
  }

  @Test
  void oneReadOfTheNextStageServesTheLoadsOfAllStores() throws InterruptedException {
    TestCache first = store(4);
    TestCache second = store(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    TransferMemory one = memory(ids);
    TransferMemory two = memory(ids);
    Task reading = first.store.load(one.transfer());
    HeldNext.Held read = nextStages.get(0).nextLoad();
    Task waiting = second.store.load(two.transfer());
    assertThat(second.metrics.count("cache_joined_shards")).isEqualTo(4);
    read.serveAll();
    reading.await(PATIENCE).requireOk();
    waiting.await(PATIENCE).requireOk();
    one.check();
    two.check();
    assertThat(nextStages.get(1).loads).isEmpty();
    // And once it is there, it is a hit for all.
    second.requireLoads(ids);
    assertThat(second.metrics.count("cache_hit_shards")).isEqualTo(4);
    first.awaitUnreferenced();
  }

  @Test
  void aStoreThatWaitsForAReadThatFailsReadsByItself() throws InterruptedException {
    TestCache first = store(4);
    TestCache second = store(4);
    BlockIds ids = BlockBytes.ids(1, 1);
    Task failing = first.store.load(memory(ids).transfer());
    HeldNext.Held read = nextStages.get(0).nextLoad();
    TransferMemory two = memory(ids);
    Task waiting = second.store.load(two.transfer());
    read.endAll(ShardOutcome.FAILED, new StoreException("broken"));
    assertThat(failing.await(PATIENCE).outcome(0)).isEqualTo(ShardOutcome.FAILED);
    serveUntilDone(waiting, nextStages.get(1));
    two.check();
    first.awaitUnreferenced();
  }

  @Test
  void roomThatOneStoreGivesUpGoesToAnotherThatWants() throws InterruptedException {
    TestCache holder = store(2);
    TestCache wanting = store(2);
    holder.store.dump(memory(BlockBytes.ids(1, 2)).fill().transfer()).await(PATIENCE).requireOk();
    TransferMemory memory = memory(BlockBytes.ids(2, 1));
    Task waiting = wanting.store.load(memory.transfer());
    wanting.awaitWanting();
    nextStages.get(0).nextDump().takeAll();
    serveUntilDone(waiting, nextStages.get(1));
    memory.check();
    holder.awaitUnreferenced();
  }

  @Test
  void flushWaitsForABlockThatAnotherStoreBringsAndNamesItWhenThatFails()
      throws InterruptedException {
    TestCache first = store(4);
    TestCache second = store(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    first.dump(ids);
    second.dump(ids);
    assertThat(second.metrics.count("cache_dump_bytes")).isZero();
    assertThat(second.store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(2);
    nextStages.get(0).nextDump().endAll(ShardOutcome.FAILED, new StoreException("broken"));
    assertThat(nextStages.get(1).dumps).isEmpty();
    for (TestCache store : List.of(second, first)) {
      FlushResult flushed = store.store.flush(PATIENCE);
      assertThat(flushed.pendingBlocks()).isZero();
      assertThat(flushed.failedBlocks()).isEqualTo(ids);
      assertThat(store.store.flush(PATIENCE).ok()).isTrue();
      assertThat(store.store.lookup(ids).isEmpty()).isTrue();
    }
  }

  @Test
  void flushNamesWhatTheNextStageOfAnotherStoreTookAndDidNotKeep() throws InterruptedException {
    TestCache first = store(4);
    TestCache second = store(4);
    BlockIds ids = BlockBytes.ids(1, 1);
    first.dump(ids);
    second.dump(ids);
    nextStages.get(0).nextDump().takeAll();
    nextStages.get(0).onFlush = () -> new FlushResult(0, ids, 1, null);
    assertThat(second.store.flush(PATIENCE).failedBlocks()).isEqualTo(ids);
    assertThat(second.store.lookup(ids).isEmpty()).isTrue();
    nextStages.get(0).onFlush = FlushResult::clean;
    assertThat(first.store.flush(PATIENCE).failedBlocks()).isEqualTo(ids);
  }

  @Test
  void theFirstToCloseLeavesThePoolToTheOthersAndTheLastFreesIt() throws InterruptedException {
    TestCache first = store(4);
    TestCache second = store(4);
    BlockIds ids = BlockBytes.ids(1, 2);
    first.dump(ids);
    nextStages.get(0).nextDump().takeAll();
    first.close();
    assertThat(second.store.lookup(ids).cardinality()).isEqualTo(2);
    second.requireLoads(ids);
    assertThat(second.opened().memory.region().segment().scope().isAlive()).isTrue();
    second.close();
    assertThat(second.opened().memory.region().segment().scope().isAlive()).isFalse();
    assertThat(store(4).store.lookup(ids).isEmpty()).isTrue();
  }

  @Test
  void storesOfAnotherCapacityHaveAPoolOfTheirOwn() throws InterruptedException {
    TestCache first = store(4);
    TestCache second = store(5);
    BlockIds ids = BlockBytes.ids(1, 1);
    first.dump(ids);
    assertThat(second.store.lookup(ids).isEmpty()).isTrue();
  }

  /** Slots come free one by one, so a load may be several reads. */
  private static void serveUntilDone(Task waiting, HeldNext next) throws InterruptedException {
    while (!waiting.check()) {
      HeldNext.Held read = next.loads.poll(10, TimeUnit.MILLISECONDS);
      if (read != null) {
        read.serveAll();
      }
    }
    waiting.result().requireOk();
  }

  private TestCache store(int blocks) {
    HeldNext next = new HeldNext();
    nextStages.add(next);
    return cache(LAYOUT, next, 0, TestCache.shared("peer", LAYOUT, blocks));
  }
}
