package ucm.store.cache;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import ucm.api.BlockLayout;
import ucm.store.cache.fixture.Segments;

/** The contract of a store, for Cache with a shared buffer that one process uses. */
final class SharedContractTest extends CacheOverMemoryContractTest {

  @AfterAll
  static void leavesNoSegment() {
    Segments.requireNone();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Segments.settings("contract", gibForSuite(layout));
  }
}
