package ucm.store.ds3fs;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.Store;
import ucm.testkit.fault.TierKillContract;

/** {@code Posix|Ds3fs}, killed with requests on the rings of simulated 3FS. */
final class TierKillTest extends TierKillContract {

  @Override
  protected Store newUpper() {
    return new UpperTier();
  }

  @Override
  protected Store newLower() {
    return new Ds3fsStore();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path directory) {
    SimulatedHf3fs hf3fs = SimulatedHf3fs.load(directory);
    hf3fs.delay(200);
    hf3fs.shortEvery(10);
    return SmallHf3fs.settings(directory.resolve("shared"));
  }

  @Override
  protected int writers() {
    return 2;
  }

  @Override
  protected int kills() {
    return 4;
  }
}
