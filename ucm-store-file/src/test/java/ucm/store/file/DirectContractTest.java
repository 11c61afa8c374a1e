package ucm.store.file;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.file.fixture.DirectSupport;
import ucm.testkit.StoreContract;

/** The contract with {@code io_direct: true}, and memory most of which is not aligned. */
class DirectContractTest extends StoreContract {

  @BeforeAll
  static void skipsWhereTheFileSystemRefuses(@TempDir Path directory) {
    DirectSupport.require(directory);
  }

  @Override
  protected Store newStore() {
    return new LocalFileStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.toString(), "io_direct", true);
  }
}
