package ucm.store.cache;

import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.StoreContract;
import ucm.testkit.fault.MemoryStore;

/** The contract of a store, for Cache above a store that keeps blocks beyond a restart. */
class CacheOverMemoryContractTest extends StoreContract {

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  /** Room for 256 blocks and for 32 MiB, as the suite asks for. */
  static double gibForSuite(BlockLayout layout) {
    long blocks = Math.max(256, Math.ceilDiv(32L << 20, layout.blockSize()));
    return TestCache.gib(layout, blocks * layout.shardCount());
  }

  @Override
  protected Store newStore() {
    return new CacheStore();
  }

  @Override
  protected @Nullable Store newNextStage() {
    return new MemoryStore(volume);
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("cache_buffer_capacity_gb", gibForSuite(layout));
  }
}
