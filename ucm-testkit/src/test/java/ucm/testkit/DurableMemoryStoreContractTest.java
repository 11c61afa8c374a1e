package ucm.testkit;

import ucm.api.Store;
import ucm.testkit.fault.MemoryStore;

final class DurableMemoryStoreContractTest extends StoreContract {

  private final MemoryStore.Medium medium = new MemoryStore.Medium();

  @Override
  protected Store newStore() {
    return new MemoryStore(medium);
  }
}
