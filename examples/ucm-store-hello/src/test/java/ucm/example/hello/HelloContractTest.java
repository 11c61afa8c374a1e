package ucm.example.hello;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

final class HelloContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new HelloStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("hello_directory", directory.toString());
  }
}
