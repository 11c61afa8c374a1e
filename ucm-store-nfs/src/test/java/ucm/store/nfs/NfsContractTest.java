package ucm.store.nfs;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract of a store, for Nfs and host memory. */
final class NfsContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new NfsStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.toString());
  }
}
