package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;

/** What the engine sees besides its bytes: refusals, log lines, memory that is offered or gone. */
final class EngineSideTest extends OverHeldNext {
  @Test
  void oneTaskTooManyIsRefusedAtOnceAndStartsNothing() throws InterruptedException {
    TestCache cache = cache(8, Map.of("waiting_queue_depth", 1));
    Task first = cache.store.load(memory(BlockBytes.ids(1, 1)).transfer());
    assertThatThrownBy(() -> cache.store.load(memory(BlockBytes.ids(2, 1)).transfer()))
        .isInstanceOf(QueueFullException.class)
        .hasMessageContaining("waiting_queue_depth");
    next.nextLoad().serveAll();
    first.await(PATIENCE).requireOk();
    assertThat(next.loads).isEmpty();
    cache.store.dump(memory(BlockBytes.ids(3, 1)).fill().transfer()).await(PATIENCE).requireOk();
  }

  @Test
  void oneShardTooManyIsRefusedUnlessItsTaskIsAlone() {
    TestCache cache = cache(8, Map.of("running_queue_depth", 3));
    cache.store.load(memory(BlockBytes.ids(1, 2)).transfer());
    assertThatThrownBy(() -> cache.store.load(memory(BlockBytes.ids(2, 1)).transfer()))
        .isInstanceOf(QueueFullException.class)
        .hasMessageContaining("running_queue_depth");
  }

  @Test
  void memoryOfADeviceIsRefused() {
    TestCache cache = cache(LAYOUT, null, 8, Map.of());
    Transfer transfer =
        Transfer.packed(LAYOUT).shard(1, 1, 0).piece(MemoryRegion.device(0, 4096, 4096), 0).build();
    assertThatThrownBy(() -> cache.store.dump(transfer))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("host memory");
  }

  @Test
  void engineMemoryThatIsGoneFailsTheShardsAndLeaksNothing() throws InterruptedException {
    TestCache cache = cache(LAYOUT, null, 8, Map.of());
    BlockIds ids = BlockBytes.ids(1, 1);
    cache.dump(ids);
    Transfer toNowhere = goneMemory(ids);
    TransferResult load = cache.store.load(toNowhere).await(PATIENCE);
    assertThat(load.outcome(0)).isEqualTo(ShardOutcome.FAILED);
    assertThat(load.cause()).isInstanceOf(IllegalStateException.class);
    BlockIds others = BlockBytes.ids(2, 1);
    TransferResult dump = cache.store.dump(goneMemory(others)).await(PATIENCE);
    assertThat(dump.failedCount()).isEqualTo(2);
    assertThat(cache.store.lookup(others).isEmpty()).isTrue();
    assertThat(cache.store.flush(PATIENCE).failedBlocks()).isEqualTo(others);
    assertThat(cache.pool().referenced()).isZero();
    assertThat(cache.pool().inUse()).isEqualTo(2);
  }

  @Test
  void engineMemoryThatMayOnlyBeReadFailsTheLoad() throws InterruptedException {
    TestCache cache = cache(LAYOUT, null, 8, Map.of());
    BlockIds ids = BlockBytes.ids(1, 1);
    cache.dump(ids);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment bytes = arena.allocate(2 * 4096);
      Transfer transfer = inOneRegion(ids, MemoryRegion.host(bytes.asReadOnly()));
      TransferResult load = cache.store.load(transfer).await(PATIENCE);
      assertThat(load.failedCount()).isEqualTo(2);
      assertThat(load.cause()).isInstanceOf(IllegalArgumentException.class);
    }
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void aNextStageThatKeepsMetadataOnlyIsRefused() {
    assertThatThrownBy(() -> new TestCache(LAYOUT, new HeldNext(false), 8, Map.of()))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("Held")
        .hasMessageContaining("metadata only");
  }

  @Test
  void usesMemoryThatTheNextStageOffers() throws InterruptedException {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment offered = arena.allocate(1 << 20, 4096);
      TestCache cache = new TestCache(LAYOUT, next.offering(offered), 8, Map.of());
      assertThat(cache.opened().memory.region().segment()).isSameAs(offered);
      BlockIds ids = BlockBytes.ids(1, 4);
      cache.dump(ids);
      cache.requireLoads(ids);
      next.letGo();
      cache.close();
      assertThat(offered.scope().isAlive()).isTrue();
    }
  }

  @Test
  void offerThatDoesNotFitIsRefused() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment small = arena.allocate(4096, 4096);
      assertThatThrownBy(() -> new TestCache(LAYOUT, next.offering(small), 8, Map.of()))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("at least 32768 bytes");
    }
  }

  private static Transfer goneMemory(BlockIds ids) {
    try (Arena arena = Arena.ofShared()) {
      return inOneRegion(ids, MemoryRegion.host(arena.allocate(2 * 4096)));
    }
  }

  private static Transfer inOneRegion(BlockIds ids, MemoryRegion region) {
    return Transfer.packed(LAYOUT)
        .shard(ids, 0, 0)
        .piece(region, 0)
        .shard(ids, 0, 1)
        .piece(region, 4096)
        .build();
  }
}
