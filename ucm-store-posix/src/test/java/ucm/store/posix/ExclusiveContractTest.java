package ucm.store.posix;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract where the index is trusted both ways. */
final class ExclusiveContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new PosixStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.toString(), "lookup_mode", "exclusive");
  }
}
