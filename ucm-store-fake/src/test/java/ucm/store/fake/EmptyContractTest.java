package ucm.store.fake;

import ucm.api.Store;
import ucm.testkit.StoreContract;

final class EmptyContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new EmptyStore();
  }

  @Override
  protected boolean keepsBlocks() {
    return false;
  }

  @Override
  protected boolean knowsLayout() {
    return false;
  }
}
