package ucm.testkit;

import ucm.api.Store;

final class MemoryStoreContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new MemoryStore();
  }

  @Override
  protected boolean survivesRestart() {
    return false;
  }
}
