package ucm.store.ds3fs;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract of {@code Posix|Ds3fs}, on simulated 3FS. */
final class TierContractTest extends StoreContract {

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
    return new UpperTier();
  }

  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of("posix_storage_backends", directory.resolve("local").toString());
  }

  @Override
  protected Store newNextStage() {
    return new Ds3fsStore();
  }

  @Override
  protected Map<String, Object> nextStageSettings(BlockLayout layout, Path directory) {
    SimulatedHf3fs.load(directory).shortEvery(20);
    return SmallHf3fs.settings(directory.resolve("shared"));
  }
}
