package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.Task;

/** The part of the suite about blocks whose shards come one by one. */
interface PartialBlockContract extends ContractPart {

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
