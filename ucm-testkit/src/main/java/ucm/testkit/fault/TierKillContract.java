package ucm.testkit.fault;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import ucm.api.Store;
import ucm.testkit.KillContract;
import ucm.testkit.StoreFixture;

/**
 * Writers of two tiers killed at random moments, while blocks are on their way from one to the other, evicted
 * from the upper one, or find no room there: no wrong block, no lost one among those reported durable.
 */
public abstract class TierKillContract extends KillContract {

  /** For subclasses. */
  protected TierKillContract() {}

  /** The upper tier, a store of files that takes a next stage. */
  protected abstract Store newUpper();

  /** What the upper tier's own keys begin with. */
  protected String upperKeys() {
    return "posix_";
  }

  /** The last stage. */
  protected abstract Store newLower();

  /** What the last stage is configured with; see {@link KillContract#settings}. */
  protected abstract Map<String, Object> lowerSettings(Path directory);

  @Override
  protected final Store newStore() {
    return new TwoTiers(newUpper(), newLower());
  }

  @Override
  protected final Map<String, Object> settings(Path directory) {
    Map<String, Object> settings = new TreeMap<>(lowerSettings(directory));
    settings.put(upperKeys() + "storage_backends", directory.resolve("upper").toString());
    settings.put("durability", "fdatasync");
    return settings;
  }

  /** Write-through, write-back, and room for some blocks, so that others are evicted or find none. */
  @Override
  protected final List<Map<String, Object>> variants() {
    Map<String, Object> small =
        Map.of(upperKeys() + "capacity_gb", 0.002, upperKeys() + "gc_check_interval_sec", 1);
    return List.of(Map.of(), Map.of(upperKeys() + "write_policy", "write_back"), small);
  }

  @Override
  protected void checkLeftovers(Store store, Path directory) throws Exception {
    store.flush(StoreFixture.PATIENCE);
  }
}
