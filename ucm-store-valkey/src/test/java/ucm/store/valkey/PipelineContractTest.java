package ucm.store.valkey;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.store.cache.CacheStore;
import ucm.store.posix.PosixStore;
import ucm.testkit.StoreContract;

/** The contract of {@code Cache|Posix|Valkey}: a pipeline is a store like any other. */
final class PipelineContractTest extends StoreContract {

  @AutoClose private static ServerProcess server;

  @BeforeAll
  static void startsTheServer() throws Exception {
    ServerProcess.require();
    server = ServerProcess.start();
  }

  @Override
  protected Store newStore() {
    return Pipeline.of(
        PipelineSpec.parse("Cache|Posix|Valkey"),
        StoreCatalog.of(
            Map.of(
                "Cache", CacheStore::new, "Posix", PosixStore::new, "Valkey", ValkeyStore::new)));
  }

  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "cache_buffer_capacity_gb",
        0.1,
        "posix_storage_backends",
        directory.resolve("local").toString(),
        "valkey_nodes",
        server.node(),
        "valkey_prefix",
        directory.toString());
  }
}
