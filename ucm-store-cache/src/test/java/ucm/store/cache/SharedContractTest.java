package ucm.store.cache;

import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.cache.fixture.Segments;
import ucm.testkit.StoreContract;
import ucm.testkit.fault.MemoryStore;

/** The contract of a store, for Cache with a shared buffer that one process uses. */
final class SharedContractTest extends StoreContract {

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  @AfterAll
  static void leavesNoSegment() {
    Segments.requireNone();
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
    return Segments.settings("contract", CacheOverMemoryContractTest.gibForSuite(layout));
  }
}
