package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.BitSet;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite about what lasts, what is bounded, and the scheduler role. */
abstract class DurabilityContract extends ConcurrencyContract {

  private static final SampleLayout SAMPLE = SampleLayout.TWO_TENSORS_THREE_SHARDS;
  private static final Map<String, Object> SCHEDULER = Map.of(CommonKeys.DEVICE_ID.name(), -1);
  private static final long PAGE_BYTES = 4096;

  private void needRestart() {
    assumeTrue(survivesRestart(), "does not outlive its process (survivesRestart)");
  }

  @Test
  void flushesAtOnceWhenNothingWasDumped() throws InterruptedException {
    FlushResult flushed = open(SAMPLE).flush(Duration.ZERO);
    assertThat(flushed.ok()).as("flush is ok when nothing was dumped").isTrue();
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(flushed.failedCount()).isZero();
    assertThat(flushed.failedBlocks().isEmpty())
        .as("flush names no failed block when nothing was dumped")
        .isTrue();
    assertThat(flushed.cause()).isNull();
  }

  @Test
  void saysWhichBlocksAreDurable() throws InterruptedException {
    assumeTrue(becomesDurable(), "never becomes durable (becomesDurable)");
    Store store = open(SAMPLE);
    BlockIds ids = BlockBytes.ids(100, 20);
    keep(store, SAMPLE.layout(), ids.slice(0, 7));
    keep(store, SAMPLE.layout(), ids.slice(9, 20));
    BitSet expected = new BitSet();
    expected.set(0, 20);
    expected.clear(7, 9);
    assertThat(store.durable(ids)).isEqualTo(expected);
  }

  @Test
  void callsNothingDurableThatDoesNotOutliveTheProcess() throws InterruptedException {
    assumeFalse(survivesRestart(), "outlives its process (survivesRestart)");
    Store store = open(SAMPLE);
    BlockIds ids = BlockBytes.ids(101, 4);
    dump(store, TransferMemory.ofBlocks(SAMPLE.layout(), Placement.SCATTERED, ids));
    settle(store);
    assertThat(store.durable(ids).stream()).isEmpty();
  }

  @Test
  void reportsABlockThatLacksShardsAsPending() throws InterruptedException {
    assumeTrue(becomesDurable(), "never becomes durable (becomesDurable)");
    Store store = open(SAMPLE);
    BlockLayout layout = SAMPLE.layout();
    BlockIds ids = BlockBytes.ids(102, 1);
    dump(store, TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, 1, 2));
    FlushResult flushed = store.flush(Duration.ZERO);
    assertThat(flushed.pendingBlocks()).as("once per stage at the most").isPositive();
    assertThat(flushed.ok()).as("flush is not ok while a block lacks a shard").isFalse();
    assertThat(store.durable(ids).stream()).isEmpty();
    dump(store, TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, 0));
    settle(store);
    assertThat(store.durable(ids).get(0))
        .as("the store calls the block durable once its last shard is flushed")
        .isTrue();
  }

  @ParameterizedTest
  @EnumSource
  void findsEverythingAfterARestart(SampleLayout sample) throws InterruptedException {
    needRestart();
    BlockIds ids = BlockBytes.ids(103, 20);
    keep(open(sample), sample.layout(), ids);
    Store again = reopen(sample, Map.of());
    assertThat(again.lookup(ids).cardinality()).isEqualTo(ids.size());
    assertThat(again.lookupPrefix(ids)).isEqualTo(ids.size() - 1);
    assertThat(again.lookup(BlockBytes.ids(104, 20)).stream()).as("others").isEmpty();
    if (becomesDurable()) {
      assertThat(again.durable(ids).cardinality()).isEqualTo(ids.size());
    }
    requireLoads(again, sample.layout(), ids, Placement.REGION_PER_TENSOR);
  }

  @Test
  void losesNothingWhenClosedWithoutAFlush() throws InterruptedException {
    needRestart();
    SampleLayout sample = SampleLayout.TWENTY_FOUR_LAYERS;
    BlockIds ids = BlockBytes.ids(105, 32);
    dump(open(sample), TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids));
    Store again = reopen(sample, Map.of());
    assertThat(again.lookup(ids).cardinality()).isEqualTo(ids.size());
    requireLoads(again, sample.layout(), ids, Placement.SCATTERED);
  }

  @Test
  void servesNoIncompleteBlockAfterARestart() throws InterruptedException {
    needRestart();
    BlockLayout layout = SAMPLE.layout();
    BlockIds ids = BlockBytes.ids(106, 1);
    dump(open(SAMPLE), TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, 2, 1));
    Store again = reopen(SAMPLE, Map.of());
    requireAbsent(again, ids);
    requireNotServed(again, layout, ids, 0);
    keep(again, layout, ids);
    requireLoads(again, layout, ids, Placement.SCATTERED);
  }

  @Test
  void keepsBlocksOfSeveralLives() throws InterruptedException {
    needRestart();
    BlockIds ids = BlockBytes.ids(107, 12);
    for (int life = 0; life < 3; life++) {
      Store store = reopen(SAMPLE, Map.of());
      assertThat(store.lookupPrefix(ids)).isEqualTo(4 * life - 1);
      keep(store, SAMPLE.layout(), ids.slice(4 * life, 4 * life + 4));
    }
    requireLoads(reopen(SAMPLE, Map.of()), SAMPLE.layout(), ids, Placement.PACKED);
  }

  @Test
  void looksUpAndMovesNoDataAsScheduler() throws InterruptedException {
    Store store = open(SAMPLE, SCHEDULER);
    BlockIds ids = BlockBytes.ids(108, 5);
    TransferMemory memory =
        TransferMemory.ofBlocks(SAMPLE.layout(), Placement.SCATTERED, ids).scribble();
    requireRefused("dump as scheduler", () -> store.dump(memory.transfer()));
    requireRefused("load as scheduler", () -> store.load(memory.transfer()));
    memory.checkScribbled();
    assertThat(store.lookup(ids).stream()).isEmpty();
    assertThat(store.lookupPrefix(ids)).isEqualTo(-1);
    assertThat(store.durable(ids).stream()).isEmpty();
    store.prefetch(ids);
    assertThat(store.flush(Duration.ZERO).ok())
        .as("flush of a scheduler, which dumps nothing, is ok")
        .isTrue();
  }

  @Test
  void findsAsSchedulerWhatAWorkerKept() throws InterruptedException {
    needRestart();
    BlockIds ids = BlockBytes.ids(109, 10);
    keep(open(SAMPLE), SAMPLE.layout(), ids.slice(0, 6));
    Store scheduler = reopen(SAMPLE, SCHEDULER);
    assertThat(scheduler.lookup(ids).cardinality()).isEqualTo(6);
    assertThat(scheduler.lookupPrefix(ids)).isEqualTo(5);
  }

  @Test
  void keepsToItsBound() throws InterruptedException {
    int bound = 16;
    Optional<Map<String, Object>> settings = settingsForAtMost(bound);
    assumeTrue(settings.isPresent(), "is not bounded in blocks (settingsForAtMost)");
    Store store = open(SAMPLE, settings.orElseThrow());
    BlockLayout layout = SAMPLE.layout();
    BlockIds ids = BlockBytes.ids(110, 5 * bound);
    for (int block = 0; block < ids.size(); block++) {
      BlockIds one = ids.slice(block, block + 1);
      ended(
          store.dump(TransferMemory.ofBlocks(layout, Placement.SCATTERED, one).fill().transfer()));
      BitSet found = store.lookup(ids);
      assertThat(found.cardinality()).as("blocks kept").isBetween(1, bound);
    }
    BitSet found = store.lookup(ids);
    for (int i = found.nextSetBit(0); i >= 0; i = found.nextSetBit(i + 1)) {
      requireLoads(store, layout, ids.slice(i, i + 1), Placement.SCATTERED);
    }
  }

  @Test
  void offersWholePagesOfMemoryOrNone() {
    Store store = open(SAMPLE);
    long wanted = 100_000;
    MemoryRegion offered = store.offerMemory(wanted);
    assumeTrue(offered != null, "offers no memory to the upper stage");
    assertThat(offered.byteSize()).isGreaterThanOrEqualTo(wanted);
    assertThat(offered.address() % PAGE_BYTES).as("aligned to pages").isZero();
  }
}
