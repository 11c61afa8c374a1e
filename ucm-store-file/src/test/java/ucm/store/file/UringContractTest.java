package ucm.store.file;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.store.file.fixture.DirectSupport;

/** The contract with {@code local_io_engine: io_uring}. */
final class UringContractTest extends DirectContractTest {

  @BeforeAll
  static void skipsWhereTheKernelRefuses() {
    DirectSupport.requireUring();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "storage_backends", directory.toString(), "io_direct", true, "local_io_engine", "io_uring");
  }
}
