package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite about blocks whose shards come one by one. */
abstract class PartialBlockContract extends TransferContract {

  @ParameterizedTest
  @EnumSource(mode = EXCLUDE, names = "ONE_TENSOR")
  void hidesABlockUntilItsLastShardIsThere(SampleLayout sample) throws InterruptedException {
    Store store = open(sample);
    BlockLayout layout = sample.layout();
    BlockIds ids = BlockBytes.ids(70, 2);
    for (int shard = layout.shardCount() - 1; shard >= 0; shard--) {
      requireAbsent(store, ids);
      requireNotServed(store, layout, ids, shard);
      dump(store, TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, shard));
    }
    if (keepsBlocks()) {
      settle(store);
      assertThat(store.lookup(ids).get(0)).as("present with all its shards").isTrue();
      assertThat(store.lookupPrefix(ids)).isZero();
      requireLoads(store, layout, ids.slice(0, 1), Placement.SCATTERED);
    }
    assertThat(store.lookup(ids).get(1)).as("the other block").isFalse();
  }

  @ParameterizedTest
  @EnumSource(mode = EXCLUDE, names = "ONE_TENSOR")
  void putsBlocksTogetherFromMixedTasks(SampleLayout sample) throws InterruptedException {
    needBlocks();
    Store store = open(sample);
    BlockLayout layout = sample.layout();
    int perBlock = layout.shardCount();
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
      dump(store, mixed(layout, ids, part));
      for (int i : part) {
        if (--left[i / perBlock] == 0) {
          whole.set(i / perBlock);
        }
      }
      BitSet found = store.lookup(ids);
      found.andNot(whole);
      assertThat(found.stream()).as("blocks found of which shards are lacking").isEmpty();
    }
    settle(store);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(ids.size());
    requireLoads(store, layout, ids, Placement.REGION_PER_TENSOR);
  }

  @Test
  void countsAShardThatComesOftenOnce() throws InterruptedException {
    SampleLayout sample = SampleLayout.TWO_TENSORS_THREE_SHARDS;
    Store store = open(sample);
    BlockLayout layout = sample.layout();
    BlockIds ids = BlockBytes.ids(72, 1);
    dump(store, TransferMemory.ofShards(layout, Placement.SCATTERED, ids, 0, 1, 1, 1, 1));
    requireAbsent(store, ids);
    for (int i = 0; i < layout.shardCount(); i++) {
      dump(store, TransferMemory.ofShards(layout, Placement.PACKED, ids, 0, 2));
      requireAbsent(store, ids);
    }
    requireNotServed(store, layout, ids, 0);
    dump(store, TransferMemory.ofShards(layout, Placement.PACKED, ids, 0, 0));
    if (keepsBlocks()) {
      settle(store);
      requireLoads(store, layout, ids, Placement.PACKED);
    }
  }

  @Test
  void takesTheShardsOfManyBlocksLayerByLayer() throws InterruptedException {
    SampleLayout sample = SampleLayout.TWENTY_FOUR_LAYERS;
    Store store = open(sample);
    BlockLayout layout = sample.layout();
    BlockIds ids = BlockBytes.ids(73, 16);
    List<Task> tasks = new ArrayList<>();
    List<TransferMemory> memories = new ArrayList<>();
    for (int layer = 0; layer < layout.shardCount(); layer++) {
      int[] shards = new int[ids.size()];
      Arrays.fill(shards, layer);
      TransferMemory memory =
          new TransferMemory(layout, Placement.REGION_PER_TENSOR, ids, shards).fill();
      memories.add(memory);
      tasks.add(store.dump(memory.transfer()));
      if (layer < layout.shardCount() - 1) {
        requireAbsent(store, ids);
      }
    }
    for (Task task : tasks) {
      assertThat(ended(task).ok()).as("the task of a dump of part of a block ends well").isTrue();
    }
    memories.forEach(TransferMemory::check);
    if (keepsBlocks()) {
      settle(store);
      assertThat(store.lookupPrefix(ids)).isEqualTo(15);
      requireLoads(store, layout, ids, Placement.SCATTERED);
    }
  }

  void dump(Store store, TransferMemory memory) throws InterruptedException {
    TransferResult result = ended(store.dump(memory.fill().transfer()));
    assertThat(result.ok()).as("dump: %s", result).isTrue();
    memory.check();
  }

  static void requireAbsent(Store store, BlockIds ids) {
    assertThat(store.lookup(ids).stream()).as("look-up of incomplete blocks").isEmpty();
    assertThat(store.lookupPrefix(ids)).as("prefix look-up of incomplete blocks").isEqualTo(-1);
    assertThat(store.durable(ids).stream()).as("durable among incomplete blocks").isEmpty();
  }

  /**
   * Loads all shards of block 0 though it is incomplete: what was never dumped must not end well, and
   * what does end well must be right.
   *
   * @param lastLacking this shard and those before it were not dumped
   */
  void requireNotServed(Store store, BlockLayout layout, BlockIds ids, int lastLacking)
      throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids.slice(0, 1));
    TransferResult result = ended(store.load(memory.transfer()));
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      if (shard <= lastLacking) {
        assertThat(result.outcome(shard))
            .as("shard %d, never dumped", shard)
            .isEqualTo(ShardOutcome.MISSING);
      } else if (result.outcome(shard) == ShardOutcome.OK && keepsBytes()) {
        memory.check(shard);
      }
    }
    memory.checkGuards();
    assertThat(store.lookup(ids).get(0)).as("after the load of an incomplete block").isFalse();
  }

  private static TransferMemory mixed(BlockLayout layout, BlockIds ids, List<Integer> part) {
    int perBlock = layout.shardCount();
    long[] words = new long[2 * part.size()];
    int[] shards = new int[part.size()];
    for (int i = 0; i < shards.length; i++) {
      int block = part.get(i) / perBlock;
      words[2 * i] = ids.high(block);
      words[2 * i + 1] = ids.low(block);
      shards[i] = part.get(i) % perBlock;
    }
    return new TransferMemory(layout, Placement.SCATTERED, BlockIds.wrap(words), shards);
  }
}
