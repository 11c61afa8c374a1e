package ucm.pipeline;

import java.util.Map;
import java.util.function.Supplier;
import ucm.api.Store;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.testkit.StoreContract;
import ucm.testkit.fault.MemoryStore;

/** A pipeline is a store like any other. */
final class PipelineContractTest extends StoreContract {

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  @Override
  protected Store newStore() {
    Map<String, Supplier<Store>> stores =
        Map.of("Relay", RelayStore::new, "Memory", () -> new MemoryStore(volume));
    return Pipeline.of(PipelineSpec.parse("Relay|Relay|Memory"), StoreCatalog.of(stores));
  }

  /** It is made by its factory methods. */
  @Override
  protected boolean isService() {
    return false;
  }
}
