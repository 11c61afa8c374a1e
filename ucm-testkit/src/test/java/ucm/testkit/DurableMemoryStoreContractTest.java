package ucm.testkit;

import ucm.api.Store;
import ucm.testkit.fault.MemoryStore;

final class DurableMemoryStoreContractTest extends StoreContract {

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  @Override
  protected Store newStore() {
    return new MemoryStore(volume);
  }
}
