package ucm.store.file.tier;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.config.StoreConfig;
import ucm.testkit.ForwardingStore;
import ucm.testkit.KillContract;
import ucm.testkit.StoreFixture;

/**
 * Writers of two tiers killed at random moments, while blocks are on their way from one to the other, evicted
 * from the upper one, or find no room there: no wrong block, no lost one among those reported durable.
 */
final class TierKillTest extends KillContract {

  @Override
  protected Store newStore() {
    return new Both();
  }

  @Override
  protected Map<String, Object> settings(Path directory) {
    return Map.of(
        "local_storage_backends",
        directory.resolve("upper").toString(),
        "storage_backends",
        directory.resolve("lower").toString(),
        "durability",
        "fdatasync");
  }

  @Override
  protected List<Map<String, Object>> variants() {
    // Room for some blocks, so that others are evicted, or find none, while the writers are killed.
    Map<String, Object> small =
        Map.of("local_capacity_gb", 0.002, "local_gc_check_interval_sec", 1);
    return List.of(Map.of(), Map.of("local_write_policy", "write_back"), small);
  }

  @Override
  protected int writers() {
    return 3;
  }

  @Override
  protected int kills() {
    return 6;
  }

  @Override
  protected void checkLeftovers(Store store, Path directory) throws Exception {
    store.flush(StoreFixture.PATIENCE);
  }

  /** The upper tier with the next stage that it owns. */
  private static final class Both extends ForwardingStore {

    private final LocalTier upper = new LocalTier();
    private final LowerFileStore lower = new LowerFileStore();

    @Override
    protected Store inner() {
      return upper;
    }

    @Override
    public void configure(StoreConfig config) {
      upper.configure(config);
      lower.configure(config);
    }

    @Override
    public void open(StoreContext context) {
      lower.open(context);
      upper.open(StoreContext.of(lower));
    }

    @Override
    public void close() {
      upper.close();
      lower.close();
    }
  }
}
