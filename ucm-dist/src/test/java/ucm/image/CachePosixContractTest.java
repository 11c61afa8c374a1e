package ucm.image;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.testkit.StoreContract;

/** The usual pipeline is a store like any other. */
final class CachePosixContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return Pipeline.of(PipelineSpec.parse("Cache|Posix"), StoreCatalog.find());
  }

  /** It is made by its factory methods. */
  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.toString(), "cache_buffer_capacity_gb", 0.1);
  }
}
