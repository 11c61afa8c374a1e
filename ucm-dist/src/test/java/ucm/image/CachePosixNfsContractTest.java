package ucm.image;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;

/** The pipeline with local disks above storage that nodes share is a store like any other. */
final class CachePosixNfsContractTest extends PipelineContract {

  CachePosixNfsContractTest() {
    super("Cache|Posix|Nfs");
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "posix_storage_backends",
        directory.resolve("local").toString(),
        "storage_backends",
        directory.resolve("shared").toString(),
        "cache_buffer_capacity_gb",
        0.1);
  }
}
