package ucm.store.file.tier;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.Store;
import ucm.testkit.fault.TierKillContract;

/** Above files. */
final class TierKillTest extends TierKillContract {

  @Override
  protected Store newUpper() {
    return new LocalTier();
  }

  @Override
  protected String upperKeys() {
    return "local_";
  }

  @Override
  protected Store newLower() {
    return new LowerFileStore();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path directory) {
    return Map.of("storage_backends", directory.resolve("lower").toString());
  }

  @Override
  protected int writers() {
    return 3;
  }

  @Override
  protected int kills() {
    return 6;
  }
}
