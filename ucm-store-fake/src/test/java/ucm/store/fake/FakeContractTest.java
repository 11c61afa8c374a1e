package ucm.store.fake;

import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

final class FakeContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new FakeStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("buffer_number", 1000);
  }

  @Override
  protected boolean keepsBytes() {
    return false;
  }

  @Override
  protected Optional<Map<String, Object>> settingsForAtMost(int blocks) {
    return Optional.of(Map.of("buffer_number", blocks));
  }
}
