package ucm.store.cache;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract of a store, for Cache as the last stage: a memory that forgets. */
class CacheAloneContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new CacheStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("cache_buffer_capacity_gb", CacheOverMemoryContractTest.gibForSuite(layout));
  }

  @Override
  protected boolean survivesRestart() {
    return false;
  }
}
