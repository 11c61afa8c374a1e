package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static ucm.testkit.OpenStore.bits;
import static ucm.testkit.SampleLayout.TWENTY_FOUR_LAYERS;
import static ucm.testkit.SampleLayout.TWO_TENSORS_THREE_SHARDS;
import static ucm.testkit.TransferMemory.Placement.PACKED;
import static ucm.testkit.TransferMemory.Placement.REGION_PER_TENSOR;
import static ucm.testkit.TransferMemory.Placement.SCATTERED;

import java.time.Duration;
import java.util.BitSet;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.MemoryRegion;

/** The part of the suite about what lasts, what is bounded, and the scheduler role. */
interface DurabilityContract extends ContractPart {

  private OpenStore open() {
    return suite().open(TWO_TENSORS_THREE_SHARDS);
  }

  private OpenStore reopen() {
    return suite().reopen(TWO_TENSORS_THREE_SHARDS, Map.of());
  }

  private static Map<String, Object> scheduler() {
    return Map.of(CommonKeys.DEVICE_ID.name(), -1);
  }

  @Test
  default void flushesAtOnceWhenNothingWasDumped() throws InterruptedException {
    FlushResult flushed = open().flush(Duration.ZERO);
    assertThat(flushed.ok()).as("flush is ok when nothing was dumped").isTrue();
    assertThat(flushed.pendingBlocks()).isZero();
    assertThat(flushed.failedCount()).isZero();
    assertThat(flushed.failedBlocks().isEmpty())
        .as("flush names no failed block when nothing was dumped")
        .isTrue();
    assertThat(flushed.cause()).isNull();
  }

  @Test
  default void saysWhichBlocksAreDurable() {
    assumeTrue(suite().becomesDurable(), "never becomes durable (becomesDurable)");
    OpenStore store = open();
    BlockIds ids = BlockBytes.ids(100, 20);
    store.keep(ids.slice(0, 7));
    store.keep(ids.slice(9, 20));
    BitSet expected = bits(0, 20);
    expected.clear(7, 9);
    assertThat(store.durable(ids)).isEqualTo(expected);
  }

  @Test
  default void callsNothingDurableThatDoesNotOutliveTheProcess() {
    assumeFalse(suite().survivesRestart(), "outlives its process (survivesRestart)");
    OpenStore store = open();
    BlockIds ids = BlockBytes.ids(101, 4);
    store.keep(ids);
    assertThat(store.durable(ids).stream()).isEmpty();
  }

  @Test
  default void reportsABlockThatLacksShardsAsPending() throws InterruptedException {
    assumeTrue(suite().becomesDurable(), "never becomes durable (becomesDurable)");
    OpenStore store = open();
    BlockIds ids = BlockBytes.ids(102, 1);
    store.requireDumps(store.shards(ids, SCATTERED, 1, 2));
    FlushResult flushed = store.flush(Duration.ZERO);
    assertThat(flushed.pendingBlocks()).as("once per stage at the most").isPositive();
    assertThat(flushed.ok()).as("flush is not ok while a block lacks a shard").isFalse();
    assertThat(store.durable(ids).stream()).isEmpty();
    store.requireDumps(store.shards(ids, SCATTERED, 0));
    store.settle();
    assertThat(store.durable(ids).get(0))
        .as("the store calls the block durable once its last shard is flushed")
        .isTrue();
  }

  @ParameterizedTest
  @EnumSource
  default void findsEverythingAfterARestart(SampleLayout sample) {
    suite().needRestart();
    BlockIds ids = BlockBytes.ids(103, 20);
    suite().open(sample).keep(ids);
    OpenStore again = suite().reopen(sample, Map.of());
    again.requireFound(ids);
    assertThat(again.lookup(BlockBytes.ids(104, 20)).stream()).as("others").isEmpty();
    if (suite().becomesDurable()) {
      assertThat(again.durable(ids)).isEqualTo(bits(0, ids.size()));
    }
    again.requireLoads(ids, REGION_PER_TENSOR);
  }

  @Test
  default void losesNothingWhenClosedWithoutAFlush() {
    suite().needRestart();
    BlockIds ids = BlockBytes.ids(105, 32);
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    store.requireDumps(store.memory(ids));
    OpenStore again = suite().reopen(TWENTY_FOUR_LAYERS, Map.of());
    again.requireFound(ids);
    again.requireLoads(ids);
  }

  @Test
  default void servesNoIncompleteBlockAfterARestart() {
    suite().needRestart();
    BlockIds ids = BlockBytes.ids(106, 1);
    OpenStore store = open();
    store.requireDumps(store.shards(ids, SCATTERED, 2, 1));
    OpenStore again = reopen();
    again.requireAbsent(ids);
    again.requireNotServed(ids, 0);
    again.keep(ids);
    again.requireLoads(ids);
  }

  @Test
  default void keepsBlocksOfSeveralLives() {
    suite().needRestart();
    BlockIds ids = BlockBytes.ids(107, 12);
    for (int life = 0; life < 3; life++) {
      OpenStore store = reopen();
      assertThat(store.lookupPrefix(ids)).isEqualTo(4 * life - 1);
      store.keep(ids.slice(4 * life, 4 * life + 4));
    }
    reopen().requireLoads(ids, PACKED);
  }

  @Test
  default void looksUpAndMovesNoDataAsScheduler() throws InterruptedException {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS, scheduler());
    BlockIds ids = BlockBytes.ids(108, 5);
    store.requireRefused("as scheduler", store.memory(ids));
    store.requireAbsent(ids);
    store.prefetch(ids);
    assertThat(store.flush(Duration.ZERO).ok())
        .as("flush of a scheduler, which dumps nothing, is ok")
        .isTrue();
  }

  @Test
  default void findsAsSchedulerWhatAWorkerKept() {
    suite().needRestart();
    BlockIds ids = BlockBytes.ids(109, 10);
    open().keep(ids.slice(0, 6));
    OpenStore scheduler = suite().reopen(TWO_TENSORS_THREE_SHARDS, scheduler());
    assertThat(scheduler.lookup(ids)).isEqualTo(bits(0, 6));
    assertThat(scheduler.lookupPrefix(ids)).isEqualTo(5);
  }

  @Test
  default void keepsToItsBound() {
    int bound = 16;
    Optional<Map<String, Object>> settings = suite().settingsForAtMost(bound);
    assumeTrue(settings.isPresent(), "is not bounded in blocks (settingsForAtMost)");
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS, settings.orElseThrow());
    BlockIds ids = BlockBytes.ids(110, 5 * bound);
    for (int block = 0; block < ids.size(); block++) {
      store.ended(store.dump(store.memory(ids.slice(block, block + 1)).fill().transfer()));
      assertThat(store.lookup(ids).cardinality()).as("blocks kept").isBetween(1, bound);
    }
    store.lookup(ids).stream().forEach(i -> store.requireLoads(ids.slice(i, i + 1)));
  }

  @Test
  default void offersWholePagesOfMemoryOrNone() {
    long wanted = 100_000;
    MemoryRegion offered = open().offerMemory(wanted);
    assumeTrue(offered != null, "offers no memory to the upper stage");
    assertThat(offered.byteSize()).isGreaterThanOrEqualTo(wanted);
    assertThat(offered.address() % 4096).as("aligned to pages").isZero();
  }
}
