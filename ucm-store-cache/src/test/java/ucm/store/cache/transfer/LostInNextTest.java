package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.MemoryStore;

/**
 * Blocks that the next stage has lost, by damage, a collector or an operator, while shards of them are
 * in the pool: a dump that is flushed without failure brings them back with all their shards.
 */
@Timeout(120)
final class LostInNextTest extends OverHeldNext {

  private static final BlockLayout THREE_SHARDS = BlockLayout.uniform(2048, 4096, 3 * 4096);
  private static final BlockIds IDS = BlockBytes.ids(1, 2);
  private static final BlockIds LOST = IDS.slice(0, 1);
  private static final int BLOCKS = 8;

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aLoadThatFindsAShardCorruptDoesNotKeepTheOthersFromBeingDumped(boolean shared)
      throws InterruptedException {
    TestCache cache = cache(next, shared, Map.of());
    Task load = cache.store.load(cache.memory(LOST).transfer());
    HeldNext.Held read = next.nextLoad();
    read.serve(0);
    read.end(1, ShardOutcome.CORRUPT, new StoreException("wrong checksum"));
    read.serve(2);
    assertThat(load.await(PATIENCE).failedCount()).isEqualTo(1);
    cache.dump(LOST);
    HeldNext.Held write = next.nextDump();
    assertThat(write.transfer.shardCount()).isEqualTo(3);
    write.takeAll();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().isComplete(LOST, 0)).isTrue();
    assertThat(cache.pool().referenced()).isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blockOfWhichAShardWasLoaded(boolean shared) throws InterruptedException {
    fillVolume();
    TestCache cache = cache(new MemoryStore(volume), shared, Map.of());
    TransferMemory one = TransferMemory.ofShards(THREE_SHARDS, Placement.SCATTERED, LOST, 0, 1);
    cache.store.load(one.transfer()).await(PATIENCE).requireOk();
    requireDumpBringsItBack(cache);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blockThatWasLoadedWhole(boolean shared) throws InterruptedException {
    fillVolume();
    TestCache cache = cache(new MemoryStore(volume), shared, Map.of());
    cache.requireLoads(IDS);
    requireDumpBringsItBack(cache);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blockThatWasDumpedAndWritten(boolean shared) throws InterruptedException {
    TestCache cache = cache(new MemoryStore(volume), shared, Map.of());
    dump(cache, IDS);
    requireDumpBringsItBack(cache);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blockOfACacheThatLooksBehindOnly(boolean shared) throws InterruptedException {
    Map<String, Object> around = Map.of("cache_load_backend_only", true);
    TestCache cache = cache(new MemoryStore(volume), shared, around);
    dump(cache, IDS);
    volume.remove(LOST, 0);
    assertThat(cache.store.lookup(IDS).stream()).containsExactly(1);
    requireDumpBringsItBack(cache);
    cache.requireLoads(IDS);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void blockThatIsDumpedLayerByLayer(boolean shared) throws InterruptedException {
    TestCache cache = cache(new MemoryStore(volume), shared, Map.of());
    for (int round = 0; round < 2; round++) {
      for (int shard = 0; shard < THREE_SHARDS.shardCount(); shard++) {
        TransferMemory layer =
            TransferMemory.ofShards(THREE_SHARDS, Placement.PACKED, LOST, 0, shard).fill();
        cache.store.dump(layer.transfer()).await(PATIENCE).requireOk();
        assertThat(cache.store.lookup(LOST).get(0)).isEqualTo(shard == 2);
      }
      assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
      requireInNext(LOST);
      volume.remove(LOST, 0);
    }
  }

  @Test
  void blockThatAnotherWorkerHadDumped() throws InterruptedException {
    TestCache first = cache(new MemoryStore(volume), true, Map.of());
    TestCache second = cache(new MemoryStore(volume), true, Map.of());
    dump(first, IDS);
    second.requireLoads(IDS);
    requireDumpBringsItBack(second);
    requireDumpBringsItBack(first);
  }

  private void fillVolume() throws InterruptedException {
    TestCache cache = cache(new MemoryStore(volume), false, Map.of());
    dump(cache, IDS);
    cache.close();
  }

  private void requireDumpBringsItBack(TestCache cache) throws InterruptedException {
    volume.remove(LOST, 0);
    dump(cache, IDS);
    requireInNext(IDS);
    assertThat(cache.pool().referenced()).isZero();
  }

  private static void dump(TestCache cache, BlockIds ids) throws InterruptedException {
    cache.dump(ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }

  private void requireInNext(BlockIds ids) throws InterruptedException {
    TestCache fresh = cache(new MemoryStore(volume), false, Map.of());
    assertThat(fresh.store.durable(ids).cardinality()).isEqualTo(ids.size());
    fresh.requireLoads(ids);
  }

  private TestCache cache(Store above, boolean shared, Map<String, Object> more) {
    long slots = (long) BLOCKS * THREE_SHARDS.shardCount();
    Map<String, Object> settings = new TreeMap<>(more);
    if (shared) {
      settings.putAll(TestCache.shared("lost", THREE_SHARDS, BLOCKS));
    } else {
      settings.put("cache_buffer_capacity_gb", TestCache.gib(THREE_SHARDS, slots));
    }
    return cache(THREE_SHARDS, above, 0, settings);
  }
}
