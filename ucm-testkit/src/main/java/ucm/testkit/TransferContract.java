package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;
import static ucm.testkit.SampleLayout.ODD_TENSORS;
import static ucm.testkit.SampleLayout.TWENTY_FOUR_LAYERS;
import static ucm.testkit.SampleLayout.TWO_TENSORS_THREE_SHARDS;
import static ucm.testkit.TransferMemory.Placement.PACKED;
import static ucm.testkit.TransferMemory.Placement.REGION_PER_TENSOR;
import static ucm.testkit.TransferMemory.Placement.SCATTERED;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite about the bytes of blocks, and about blocks whose shards come one by one. */
interface TransferContract extends ContractPart {

  @ParameterizedTest
  @EnumSource
  default void bringsBackEveryByteOfScatteredBlocks(SampleLayout sample) {
    requireRoundTrip(sample, SCATTERED, SCATTERED);
  }

  @ParameterizedTest
  @EnumSource
  default void bringsBackEveryByteOfPackedBlocks(SampleLayout sample) {
    requireRoundTrip(sample, PACKED, PACKED);
  }

  @ParameterizedTest
  @EnumSource
  default void bringsBackEveryByteBetweenOneRegionAndMany(SampleLayout sample) {
    requireRoundTrip(sample, REGION_PER_TENSOR, PACKED);
    requireRoundTrip(sample, PACKED, REGION_PER_TENSOR);
  }

  private void requireRoundTrip(SampleLayout sample, Placement from, Placement to) {
    suite().needBlocks();
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(from.name().hashCode(), 9);
    store.keep(store.memory(ids, from));
    store.requireFound(ids);
    store.requireLoads(ids, to);
    store.requireLoads(ids.slice(4, 5), to);
  }

  @ParameterizedTest
  @EnumSource
  default void movesRangesOfATransfer(SampleLayout sample) {
    suite().needBlocks();
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(23, 6);
    TransferMemory memory = store.memory(ids, PACKED).fill();
    Transfer all = memory.transfer();
    int shards = store.layout.shardCount();
    for (int block = 0; block < ids.size(); block++) {
      store.requireTaken(part(all, block * shards, (block + 1) * shards, 1));
    }
    memory.scribble();
    store.settle();
    store.requireFound(ids);
    for (int block = ids.size() - 1; block >= 0; block--) {
      store.requireLoaded(part(all, block * shards, (block + 1) * shards, 1));
    }
    store.requireRightBytes(memory);
  }

  @ParameterizedTest
  @EnumSource
  default void movesSomeShardsOfATransfer(SampleLayout sample) {
    suite().needBlocks();
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(24, 7);
    TransferMemory memory = store.memory(ids, PACKED).fill();
    Transfer all = memory.transfer();
    for (int first = 0; first < 2; first++) {
      store.requireTaken(part(all, first, all.shardCount(), 2));
    }
    memory.scribble();
    store.settle();
    store.requireFound(ids);
    for (int first = 1; first >= 0; first--) {
      store.requireLoaded(part(all, first, all.shardCount(), 2));
    }
    store.requireRightBytes(memory);
  }

  /** Each so many-th shard of a transfer, from one on and before another. */
  private static Transfer part(Transfer all, int from, int to, int step) {
    int[] shards = IntStream.iterate(from, i -> i < to, i -> i + step).toArray();
    return all.select(shards, ShardListener.NONE);
  }

  @ParameterizedTest
  @EnumSource
  default void loadsSingleShardsInAnyOrder(SampleLayout sample) {
    suite().needBlocks();
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(20, 3);
    store.keep(ids);
    for (int shard = store.layout.shardCount() - 1; shard >= 0; shard--) {
      for (int block = 0; block < ids.size(); block++) {
        store.requireLoads(store.shards(ids.slice(block, block + 1), SCATTERED, shard));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  default void endsShardsOfAbsentBlocksAsMissingAndTheOthersWell(SampleLayout sample) {
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(21, 6);
    int there = suite().keepsBlocks() ? 3 : 0;
    if (there > 0) {
      store.keep(ids.slice(0, there));
    }
    // Absent ones on both sides of those that are there.
    BlockIds mixed = BlockIds.ofHex(ids.hex(3), ids.hex(0), ids.hex(1), ids.hex(4), ids.hex(2));
    TransferMemory memory = store.memory(mixed);
    TransferResult result = store.loaded(memory);
    int perBlock = store.layout.shardCount();
    int missing = 0;
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      int block = shard / perBlock;
      boolean present = there > 0 && block != 0 && block != 3;
      assertThat(result.outcome(shard))
          .as("outcome of shard %d of block %d, which is %s", shard % perBlock, block, present)
          .isEqualTo(present ? ShardOutcome.OK : ShardOutcome.MISSING);
      assertThat(result.failedShards().get(shard)).isNotEqualTo(present);
      missing += present ? 0 : 1;
    }
    store.requireRightBytes(result, memory);
    assertThat(result.ok()).as("a load of which shards are absent is not ok").isFalse();
    assertThat(result.failedCount()).isEqualTo(missing);
    assertThat(result.okCount()).isEqualTo(memory.shardCount() - missing);
    if (there > 0) {
      assertThat(result.failedBlocks()).isEqualTo(BlockIds.ofHex(mixed.hex(0), mixed.hex(3)));
    }
    assertThatThrownBy(result::requireOk).isInstanceOf(StoreException.class);
    assertThat(store.lookup(ids.slice(3, 6)).stream()).as("absent blocks after the load").isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  default void acceptsDumpsAndLeavesTheMemoryAsItWas(SampleLayout sample) {
    OpenStore store = suite().open(sample);
    for (Placement placement : Placement.values()) {
      BlockIds ids = BlockBytes.ids(placement.name().hashCode(), 4);
      store.requireDumps(store.memory(ids, placement));
    }
  }

  @Test
  default void doesNotReadTheMemoryOfADumpThatHasEnded() {
    suite().needBytes();
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    BlockIds ids = BlockBytes.ids(40, 12);
    for (int block = 0; block < ids.size(); block++) {
      TransferMemory memory = store.memory(ids.slice(block, block + 1), REGION_PER_TENSOR);
      store.requireTaken(memory.fill().transfer());
      memory.scribble();
    }
    store.settle();
    store.requireLoads(ids);
  }

  @Test
  default void doesNotWriteTheMemoryOfALoadThatHasEnded() {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    BlockIds ids = BlockBytes.ids(41, 12);
    if (suite().keepsBlocks()) {
      store.keep(ids.slice(0, 10));
    }
    TransferMemory early = store.memory(ids);
    store.loaded(early);
    early.scribble();
    // Whatever is still under way has ample occasion to touch the memory.
    for (int i = 0; i < 10; i++) {
      store.loaded(store.memory(ids, PACKED));
    }
    store.lookup(ids);
    suite().closeAll();
    early.checkScribbled();
  }

  @ParameterizedTest
  @EnumSource
  default void changesNothingWhenABlockThatIsThereIsDumpedAgain(SampleLayout sample) {
    suite().needBlocks();
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(50, 4);
    store.keep(ids);
    // Equal ids mean equal bytes; other bytes here show whether any were moved.
    store.requireTaken(store.memory(ids.slice(1, 3)).scribble().transfer());
    store.settle();
    store.requireFound(ids);
    store.requireLoads(ids);
  }

  @Test
  default void endsATransferOfNothingAtOnce() {
    OpenStore store = suite().open(ODD_TENSORS);
    Transfer nothing = Transfer.scattered(store.layout).build();
    for (Task task : new Task[] {store.load(nothing), store.dump(nothing)}) {
      assertThat(task.check()).as("%s has completed at once", task).isTrue();
      assertThat(task.result().ok()).as("the task went well").isTrue();
      assertThat(task.result().failedShards().stream()).isEmpty();
    }
  }

  @Test
  default void refusesTransfersOfAnotherLayout() {
    assumeTrue(suite().knowsLayout(), "knows no layout (knowsLayout)");
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    BlockIds ids = BlockBytes.ids(60, 1);
    BlockLayout[] others = {
      BlockLayout.uniform(4096, 4096, 12_288),
      BlockLayout.uniform(2048, 4096, 16_384),
      BlockLayout.of(new long[] {2047, 2049}, 12_288),
      BlockLayout.uniform(2048, 12_288, 12_288)
    };
    for (BlockLayout other : others) {
      store.requireRefused(other.toString(), TransferMemory.ofBlocks(other, SCATTERED, ids));
    }
    assertThat(store.lookup(ids).stream()).as("after refused dumps").isEmpty();
    if (suite().keepsBlocks()) {
      store.keep(ids);
      store.requireLoads(ids);
    }
  }

  @ParameterizedTest
  @EnumSource(mode = EXCLUDE, names = "ONE_TENSOR")
  default void hidesABlockUntilItsLastShardIsThere(SampleLayout sample) {
    OpenStore store = suite().open(sample);
    BlockIds ids = BlockBytes.ids(70, 2);
    for (int shard = store.layout.shardCount() - 1; shard >= 0; shard--) {
      store.requireAbsent(ids);
      store.requireNotServed(ids, shard);
      store.requireDumps(store.shards(ids, SCATTERED, shard));
    }
    if (suite().keepsBlocks()) {
      store.settle();
      assertThat(store.lookup(ids).get(0)).as("present with all its shards").isTrue();
      assertThat(store.lookupPrefix(ids)).isZero();
      store.requireLoads(ids.slice(0, 1));
    }
    assertThat(store.lookup(ids).get(1)).as("the other block").isFalse();
  }

  @ParameterizedTest
  @EnumSource(mode = EXCLUDE, names = "ONE_TENSOR")
  default void putsBlocksTogetherFromMixedTasks(SampleLayout sample) {
    suite().needBlocks();
    OpenStore store = suite().open(sample);
    int perBlock = store.layout.shardCount();
    BlockIds ids = BlockBytes.ids(71, 6);
    List<Integer> order = new ArrayList<>();
    for (int i = 0; i < ids.size() * perBlock; i++) {
      order.add(i);
    }
    Collections.shuffle(order, new Random(71));
    int[] left = new int[ids.size()];
    Arrays.fill(left, perBlock);
    BitSet whole = new BitSet();
    int perTask = order.size() / 5;
    for (int from = 0; from < order.size(); from += perTask) {
      List<Integer> part = order.subList(from, Math.min(from + perTask, order.size()));
      store.requireDumps(mixed(store, ids, part));
      for (int i : part) {
        if (--left[i / perBlock] == 0) {
          whole.set(i / perBlock);
        }
      }
      BitSet found = store.lookup(ids);
      found.andNot(whole);
      assertThat(found.stream()).as("blocks found of which shards are lacking").isEmpty();
    }
    store.settle();
    store.requireFound(ids);
    store.requireLoads(ids, REGION_PER_TENSOR);
  }

  private static TransferMemory mixed(OpenStore store, BlockIds ids, List<Integer> part) {
    int perBlock = store.layout.shardCount();
    int[] shards = part.stream().mapToInt(i -> i % perBlock).toArray();
    BlockIds blocks = TransferMemory.pick(ids, shards.length, i -> part.get(i) / perBlock);
    return new TransferMemory(store.layout, SCATTERED, blocks, shards);
  }

  @Test
  default void countsAShardThatComesOftenOnce() {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    BlockIds ids = BlockBytes.ids(72, 1);
    store.requireDumps(store.shards(ids, SCATTERED, 1, 1, 1, 1));
    store.requireAbsent(ids);
    for (int i = 0; i < store.layout.shardCount(); i++) {
      store.requireDumps(store.shards(ids, PACKED, 2));
      store.requireAbsent(ids);
    }
    store.requireNotServed(ids, 0);
    store.requireDumps(store.shards(ids, PACKED, 0));
    if (suite().keepsBlocks()) {
      store.settle();
      store.requireLoads(ids, PACKED);
    }
  }

  @Test
  default void takesTheShardsOfManyBlocksLayerByLayer() {
    OpenStore store = suite().open(TWENTY_FOUR_LAYERS);
    BlockIds ids = BlockBytes.ids(73, 16);
    List<Task> tasks = new ArrayList<>();
    List<TransferMemory> memories = new ArrayList<>();
    for (int layer = 0; layer < store.layout.shardCount(); layer++) {
      int[] shards = new int[ids.size()];
      Arrays.fill(shards, layer);
      TransferMemory memory =
          new TransferMemory(store.layout, REGION_PER_TENSOR, ids, shards).fill();
      memories.add(memory);
      tasks.add(store.dump(memory.transfer()));
      if (layer < store.layout.shardCount() - 1) {
        store.requireAbsent(ids);
      }
    }
    for (Task task : tasks) {
      assertThat(store.ended(task).ok()).as("dump of part of a block ends well").isTrue();
    }
    memories.forEach(TransferMemory::check);
    if (suite().keepsBlocks()) {
      store.settle();
      assertThat(store.lookupPrefix(ids)).isEqualTo(15);
      store.requireLoads(ids);
    }
  }
}
