package ucm.image;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;

/** The usual pipeline is a store like any other. */
final class CachePosixContractTest extends PipelineContract {

  CachePosixContractTest() {
    super("Cache|Posix");
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.toString(), "cache_buffer_capacity_gb", 0.1);
  }
}
