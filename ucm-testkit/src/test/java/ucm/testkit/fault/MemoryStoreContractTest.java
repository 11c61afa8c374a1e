package ucm.testkit.fault;

import ucm.api.Store;
import ucm.testkit.StoreContract;

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
