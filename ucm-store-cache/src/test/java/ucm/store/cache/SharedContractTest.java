package ucm.store.cache;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import ucm.api.BlockLayout;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.fault.MemoryStore;

/** The contract of a store, for Cache with a pool that another store has made and uses all the time. */
final class SharedContractTest extends CacheOverMemoryContractTest {

  private static final Set<String> COUNTING_THREADS =
      Set.of("configuringTouchesNoFileAndStartsNoThread", "canBeOpenedAgainByAnotherInstance");

  private final Map<String, TestCache> neighbours = new HashMap<>();
  private boolean isAlone;

  @BeforeEach
  void leavesAloneWhatCountsThreads(TestInfo test) {
    isAlone = COUNTING_THREADS.contains(test.getTestMethod().orElseThrow().getName());
  }

  @AfterEach
  void closesTheNeighbours() {
    neighbours.values().forEach(TestCache::close);
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    String name = directory.getFileName() + "-" + Integer.toHexString(layout.hashCode());
    Map<String, Object> settings =
        Map.of(
            "share_buffer_enable",
            true,
            "unique_id",
            name,
            // A block that lacks shards may still come from a neighbour: close waits for it as
            // long.
            "timeout_ms",
            10_000,
            "cache_buffer_capacity_gb",
            gibForSuite(layout));
    if (!isAlone) {
      neighbours.computeIfAbsent(
          name, _ -> new TestCache(layout, new MemoryStore(new MemoryStore.Volume()), 0, settings));
    }
    return settings;
  }
}
