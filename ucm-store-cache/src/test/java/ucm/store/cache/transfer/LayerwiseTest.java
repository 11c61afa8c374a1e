package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** An engine that moves its KV cache layer by layer: a shard is a layer, a task has one of each block. */
@Timeout(180)
final class LayerwiseTest {

  private static final int LAYERS = 4;
  private static final long LAYER_BYTES = 4096;
  private static final BlockLayout LAYOUT =
      BlockLayout.uniform(LAYER_BYTES, LAYER_BYTES, LAYERS * LAYER_BYTES);
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final BlockIds IDS = BlockBytes.ids(1, 3);

  private final HeldNext next = new HeldNext();
  private final TestCache cache = new TestCache(LAYOUT, next, 16, Map.of());
  private final TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, IDS);

  @AfterEach
  void closes() {
    next.letGo();
    cache.close();
  }

  @Test
  void layerIsLoadedWhileTheNextOnesAreOnTheirWay() throws InterruptedException {
    List<Task> loads = new ArrayList<>();
    List<HeldNext.Held> reads = new ArrayList<>();
    for (int layer = 0; layer < LAYERS; layer++) {
      loads.add(cache.store.load(layer(layer)));
      // One submission for the layer of all blocks.
      reads.add(next.nextLoad());
      assertThat(reads.get(layer).transfer.shardCount()).isEqualTo(IDS.size());
    }
    for (int layer = 0; layer < LAYERS; layer++) {
      assertThat(loads.get(layer).check()).isFalse();
      reads.get(layer).serveAll();
      loads.get(layer).await(PATIENCE).requireOk();
    }
    memory.check();
    assertThat(cache.store.lookup(IDS).cardinality()).isEqualTo(IDS.size());
  }

  @Test
  void layerThatIsLateHoldsUpNoOther() throws InterruptedException {
    Task first = cache.store.load(layer(0));
    HeldNext.Held late = next.nextLoad();
    Task second = cache.store.load(layer(1));
    next.nextLoad().serveAll();
    second.await(PATIENCE).requireOk();
    assertThat(first.check()).isFalse();
    late.serveAll();
    first.await(PATIENCE).requireOk();
  }

  @Test
  void layerLeavesTheEngineAndIsWrittenBeforeTheNextIsComputed() throws InterruptedException {
    memory.fill();
    for (int layer = 0; layer < LAYERS; layer++) {
      cache.store.dump(layer(layer)).await(PATIENCE).requireOk();
      HeldNext.Held write = next.nextDump();
      assertThat(write.transfer.shardCount()).isEqualTo(IDS.size());
      // Until its last layer is there, a block is no hit.
      assertThat(cache.store.lookup(IDS).isEmpty()).isEqualTo(layer < LAYERS - 1);
      write.takeAll();
    }
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void layersOfAStepAreOneUseOfABlockForTheEvictionPolicy() throws InterruptedException {
    try (TestCache alone =
        new TestCache(LAYOUT, null, 2 * LAYERS, Map.of("cache_policy", "s3fifo"))) {
      BlockIds ids = BlockBytes.ids(5, 4);
      dump(alone, ids.slice(0, 1));
      dump(alone, ids.slice(1, 2));
      // Loaded once more, layer by layer: one use, and one use does not save it from leaving first.
      TransferMemory loaded = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids.slice(0, 1));
      for (int layer = 0; layer < LAYERS; layer++) {
        alone.store.load(layer(loaded, ids.slice(0, 1), layer)).await(PATIENCE).requireOk();
      }
      loaded.check();
      dump(alone, ids.slice(2, 3));
      assertThat(alone.store.lookup(ids).stream()).containsExactly(1, 2);
    }
  }

  private static void dump(TestCache cache, BlockIds ids) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids).fill();
    for (int layer = 0; layer < LAYERS; layer++) {
      cache.store.dump(layer(memory, ids, layer)).await(PATIENCE).requireOk();
    }
  }

  private Transfer layer(int layer) {
    return layer(memory, IDS, layer);
  }

  /** The layer of each block, out of the memory of all layers. */
  private static Transfer layer(TransferMemory memory, BlockIds ids, int layer) {
    Transfer all = memory.transfer();
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    for (int shard = 0; shard < all.shardCount(); shard++) {
      if (all.shardIndex(shard) == layer) {
        MemoryRegion region = all.region(shard, 0);
        builder
            .shard(all.ids().high(shard), all.ids().low(shard), layer)
            .piece(region, all.offset(shard, 0));
      }
    }
    Transfer one = builder.build();
    assertThat(one.shardCount()).isEqualTo(ids.size());
    return one;
  }
}
