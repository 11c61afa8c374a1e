package ucm.store.ds3fs;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract on simulated 3FS, some of whose requests move a part only. */
final class Ds3fsContractTest extends StoreContract {

  private static SimulatedHf3fs hf3fs;

  @BeforeAll
  static void load() {
    hf3fs = SimulatedHf3fs.load();
  }

  @AfterEach
  void misusesNothing() {
    hf3fs.requireNoMisuse();
  }

  @Override
  protected Store newStore() {
    return new Ds3fsStore();
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    SimulatedHf3fs.load(directory).shortEvery(20);
    return SmallHf3fs.settings(directory);
  }
}
