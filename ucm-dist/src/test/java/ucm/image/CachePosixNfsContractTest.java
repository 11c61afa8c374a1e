package ucm.image;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.testkit.StoreContract;

/** The pipeline with local disks above storage that nodes share is a store like any other. */
final class CachePosixNfsContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return Pipeline.of(PipelineSpec.parse("Cache|Posix|Nfs"), StoreCatalog.find());
  }

  /** It is made by its factory methods. */
  @Override
  protected boolean isService() {
    return false;
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
