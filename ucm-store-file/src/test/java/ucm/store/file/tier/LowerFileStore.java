package ucm.store.file.tier;

import ucm.api.StoreName;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;

/** A store of files below the upper tier. */
@StoreName("Lower")
final class LowerFileStore extends FileStore {

  LowerFileStore() {
    super(new StoreKind("Lower", false));
  }
}
