package ucm.store.file;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;

/** The contract with {@code local_io_engine: aio}. */
final class AioContractTest extends DirectContractTest {

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "storage_backends", directory.toString(), "io_direct", true, "local_io_engine", "aio");
  }
}
