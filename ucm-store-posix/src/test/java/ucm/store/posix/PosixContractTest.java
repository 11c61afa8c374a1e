package ucm.store.posix;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

final class PosixContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new PosixStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.toString());
  }
}
