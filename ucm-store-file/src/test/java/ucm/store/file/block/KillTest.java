package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.DirectSupport;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.KillContract;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TestContext;

/**
 * Writers killed at random moments, with every engine: no wrong block, no lost one among those
 * reported durable, and no temporary file and no lease after the next start.
 */
final class KillTest extends KillContract {

  private final RecordingMetrics metrics = new RecordingMetrics();

  @Override
  protected Store newStore() {
    return new LocalFileStore();
  }

  @Override
  protected Map<String, Object> settings(Path directory) {
    return Map.of("storage_backends", directory.toString(), "durability", "fdatasync");
  }

  /** psync through the page cache, and every engine past it that this machine has. */
  @Override
  protected List<Map<String, Object>> variants() {
    List<Map<String, Object>> variants = new ArrayList<>(List.of(Map.of()));
    if (DirectSupport.isThere(Path.of(System.getProperty("java.io.tmpdir")))) {
      variants.add(direct("psync"));
      variants.add(direct("aio"));
    }
    return variants;
  }

  private static Map<String, Object> direct(String engine) {
    return Map.of("io_direct", true, "local_io_engine", engine);
  }

  @Override
  protected int writers() {
    return 3;
  }

  @Override
  protected int kills() {
    return 12;
  }

  @Override
  protected StoreContext context() {
    return new TestContext(metrics);
  }

  @Override
  protected void checkLeftovers(Store store, Path directory) throws Exception {
    ((LocalFileStore) store).awaitSweep();
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      assertThat(stores.temps()).as("temporary files").isEmpty();
      // The lease of the store that checks is the only one.
      assertThat(stores.in(".writers")).as("leases").hasSizeLessThanOrEqualTo(1);
    }
    assertThat(metrics.count("local_corrupt_blocks")).isZero();
  }
}
