package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.BitSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Places;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite about the bytes of whole blocks. */
abstract class TransferContract extends LookupContract {

  @ParameterizedTest
  @EnumSource
  void bringsBackEveryByteOfScatteredBlocks(SampleLayout sample) throws InterruptedException {
    requireRoundTrip(sample, Placement.SCATTERED, Placement.SCATTERED);
  }

  @ParameterizedTest
  @EnumSource
  void bringsBackEveryByteOfPackedBlocks(SampleLayout sample) throws InterruptedException {
    requireRoundTrip(sample, Placement.PACKED, Placement.PACKED);
  }

  @ParameterizedTest
  @EnumSource
  void bringsBackEveryByteBetweenOneRegionAndMany(SampleLayout sample) throws InterruptedException {
    requireRoundTrip(sample, Placement.REGION_PER_TENSOR, Placement.PACKED);
    requireRoundTrip(sample, Placement.PACKED, Placement.REGION_PER_TENSOR);
  }

  private void requireRoundTrip(SampleLayout sample, Placement from, Placement to)
      throws InterruptedException {
    needBlocks();
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(from.name().hashCode(), 9);
    keep(store, TransferMemory.ofBlocks(sample.layout(), from, ids));
    assertThat(store.lookup(ids).cardinality()).isEqualTo(9);
    requireLoads(store, sample.layout(), ids, to);
    requireLoads(store, sample.layout(), ids.slice(4, 5), to);
  }

  @ParameterizedTest
  @EnumSource
  void movesRangesWhosePlacesAreReused(SampleLayout sample) throws InterruptedException {
    needBlocks();
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(23, 6);
    TransferMemory memory = TransferMemory.ofBlocks(sample.layout(), Placement.PACKED, ids).fill();
    Transfer all = memory.transfer();
    // A store that asks for the places of a task that has ended gets an exception, or those of the
    // next.
    Places places = new Places(sample.layout());
    for (int block = 0; block < ids.size(); block++) {
      assertThat(ended(store.dump(range(all, block, places))).ok())
          .as("the store ends the dump well")
          .isTrue();
    }
    places.clear();
    memory.scribble();
    settle(store);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(ids.size());
    for (int block = ids.size() - 1; block >= 0; block--) {
      assertThat(ended(store.load(range(all, block, places))).ok())
          .as("the store loads blocks that are there")
          .isTrue();
    }
    places.clear();
    if (keepsBytes()) {
      memory.check();
    }
    memory.checkGuards();
  }

  @ParameterizedTest
  @EnumSource
  void movesSomeShardsOfATransfer(SampleLayout sample) throws InterruptedException {
    needBlocks();
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(24, 7);
    TransferMemory memory = TransferMemory.ofBlocks(sample.layout(), Placement.PACKED, ids).fill();
    Transfer all = memory.transfer();
    for (boolean even : new boolean[] {true, false}) {
      assertThat(ended(store.dump(eachOther(all, even))).ok())
          .as("the store ends the dump well")
          .isTrue();
    }
    memory.scribble();
    settle(store);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(ids.size());
    for (boolean even : new boolean[] {false, true}) {
      assertThat(ended(store.load(eachOther(all, even))).ok())
          .as("the store loads blocks that are there")
          .isTrue();
    }
    if (keepsBytes()) {
      memory.check();
    }
    memory.checkGuards();
  }

  private static Transfer range(Transfer all, int block, Places places) {
    int shards = all.layout().shardCount();
    places.clear();
    for (int i = block * shards; i < (block + 1) * shards; i++) {
      places.add(all.region(i, 0), all.offset(i, 0));
    }
    return Transfer.packedRange(
        all, block * shards, (block + 1) * shards, places, ShardListener.NONE);
  }

  /** The shards of even or odd numbers. */
  private static Transfer eachOther(Transfer all, boolean even) {
    Places places = new Places(all.layout());
    BitSet some = new BitSet();
    for (int i = even ? 0 : 1; i < all.shardCount(); i += 2) {
      some.set(i);
      places.add(all.region(i, 0), all.offset(i, 0));
    }
    return Transfer.packedSelection(all, 0, some, places, ShardListener.NONE);
  }

  @ParameterizedTest
  @EnumSource
  void loadsSingleShardsInAnyOrder(SampleLayout sample) throws InterruptedException {
    needBlocks();
    Store store = open(sample);
    BlockLayout layout = sample.layout();
    BlockIds ids = BlockBytes.ids(20, 3);
    keep(store, layout, ids);
    for (int shard = layout.shardCount() - 1; shard >= 0; shard--) {
      for (int block = 0; block < ids.size(); block++) {
        TransferMemory one =
            TransferMemory.ofShards(layout, Placement.SCATTERED, ids, block, shard);
        assertThat(ended(store.load(one.transfer())).ok())
            .as("the store loads a shard that is there")
            .isTrue();
        if (keepsBytes()) {
          one.check();
        }
        one.checkGuards();
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void endsShardsOfAbsentBlocksAsMissingAndTheOthersWell(SampleLayout sample)
      throws InterruptedException {
    Store store = open(sample);
    BlockLayout layout = sample.layout();
    BlockIds ids = BlockBytes.ids(21, 6);
    int there = keepsBlocks() ? 3 : 0;
    if (there > 0) {
      keep(store, layout, ids.slice(0, there));
    }
    // Absent ones on both sides of those that are there.
    BlockIds mixed = BlockIds.ofHex(ids.hex(3), ids.hex(0), ids.hex(1), ids.hex(4), ids.hex(2));
    TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.SCATTERED, mixed);
    TransferResult result = ended(store.load(memory.transfer()));
    int perBlock = layout.shardCount();
    int missing = 0;
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      int block = shard / perBlock;
      boolean present = there > 0 && block != 0 && block != 3;
      assertThat(result.outcome(shard))
          .as("outcome of shard %d of block %d, which is %s", shard % perBlock, block, present)
          .isEqualTo(present ? ShardOutcome.OK : ShardOutcome.MISSING);
      assertThat(result.failedShards().get(shard)).isNotEqualTo(present);
      missing += present ? 0 : 1;
      if (present && keepsBytes()) {
        memory.check(shard);
      }
    }
    memory.checkGuards();
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
  void acceptsDumpsAndLeavesTheMemoryAsItWas(SampleLayout sample) throws InterruptedException {
    Store store = open(sample);
    for (Placement placement : Placement.values()) {
      BlockIds ids = BlockBytes.ids(placement.name().hashCode(), 4);
      TransferMemory memory = TransferMemory.ofBlocks(sample.layout(), placement, ids).fill();
      TransferResult result = ended(store.dump(memory.transfer()));
      assertThat(result.ok()).as("dump: %s", result).isTrue();
      memory.check();
    }
  }

  @Test
  void doesNotReadTheMemoryOfADumpThatHasEnded() throws InterruptedException {
    needBytes();
    SampleLayout sample = SampleLayout.TWENTY_FOUR_LAYERS;
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(40, 12);
    for (int block = 0; block < ids.size(); block++) {
      TransferMemory memory =
          TransferMemory.ofBlocks(
                  sample.layout(), Placement.REGION_PER_TENSOR, ids.slice(block, block + 1))
              .fill();
      assertThat(ended(store.dump(memory.transfer())).ok())
          .as("the store ends the dump well")
          .isTrue();
      memory.scribble();
    }
    settle(store);
    requireLoads(store, sample.layout(), ids, Placement.SCATTERED);
  }

  @Test
  void doesNotWriteTheMemoryOfALoadThatHasEnded() throws InterruptedException {
    SampleLayout sample = SampleLayout.TWO_TENSORS_THREE_SHARDS;
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(41, 12);
    if (keepsBlocks()) {
      keep(store, sample.layout(), ids.slice(0, 10));
    }
    TransferMemory early = TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids);
    ended(store.load(early.transfer()));
    early.scribble();
    // Whatever is still under way has ample occasion to touch the memory.
    for (int i = 0; i < 10; i++) {
      TransferMemory later = TransferMemory.ofBlocks(sample.layout(), Placement.PACKED, ids);
      ended(store.load(later.transfer()));
    }
    store.lookup(ids);
    closeAll();
    early.checkScribbled();
  }

  @ParameterizedTest
  @EnumSource
  void changesNothingWhenABlockThatIsThereIsDumpedAgain(SampleLayout sample)
      throws InterruptedException {
    needBlocks();
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(50, 4);
    keep(store, sample.layout(), ids);
    // Equal ids mean equal bytes; other bytes here show whether any were moved.
    TransferMemory again =
        TransferMemory.ofBlocks(sample.layout(), Placement.SCATTERED, ids.slice(1, 3)).scribble();
    TransferResult result = ended(store.dump(again.transfer()));
    assertThat(result.ok()).as("second dump: %s", result).isTrue();
    settle(store);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(4);
    requireLoads(store, sample.layout(), ids, Placement.SCATTERED);
  }

  @Test
  void endsATransferOfNothingAtOnce() {
    Store store = open(SampleLayout.ODD_TENSORS);
    Transfer nothing = Transfer.scattered(SampleLayout.ODD_TENSORS.layout()).build();
    for (Task task : new Task[] {store.load(nothing), store.dump(nothing)}) {
      assertThat(task.check()).as("%s has completed at once", task).isTrue();
      assertThat(task.result().ok()).as("the task went well").isTrue();
      assertThat(task.result().failedShards().stream()).isEmpty();
    }
  }

  @Test
  void refusesTransfersOfAnotherLayout() throws InterruptedException {
    assumeTrue(knowsLayout(), "knows no layout (knowsLayout)");
    SampleLayout sample = SampleLayout.TWO_TENSORS_THREE_SHARDS;
    Store store = open(sample);
    BlockIds ids = BlockBytes.ids(60, 1);
    BlockLayout[] others = {
      BlockLayout.uniform(4096, 4096, 12_288),
      BlockLayout.uniform(2048, 4096, 16_384),
      BlockLayout.of(new long[] {2047, 2049}, 12_288),
      BlockLayout.uniform(2048, 12_288, 12_288)
    };
    for (BlockLayout other : others) {
      TransferMemory memory = TransferMemory.ofBlocks(other, Placement.SCATTERED, ids).scribble();
      requireRefused(other.toString(), () -> store.dump(memory.transfer()));
      requireRefused(other.toString(), () -> store.load(memory.transfer()));
      memory.checkScribbled();
    }
    assertThat(store.lookup(ids).stream()).as("after refused dumps").isEmpty();
    if (keepsBlocks()) {
      keep(store, sample.layout(), ids);
      requireLoads(store, sample.layout(), ids, Placement.SCATTERED);
    }
  }

  static void requireRefused(String what, Runnable call) {
    assertThatThrownBy(call::run)
        .as(what)
        .isInstanceOf(StoreException.class)
        .isNotInstanceOf(StoreClosedException.class)
        .message()
        .isNotBlank();
  }
}
