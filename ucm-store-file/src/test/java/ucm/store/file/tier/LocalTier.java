package ucm.store.file.tier;

import ucm.api.StoreName;
import ucm.store.file.FileStore;
import ucm.store.file.LocalFileStore;

/** The upper tier of this module's tests. */
@StoreName("Local")
final class LocalTier extends TieredStore {

  LocalTier() {
    this(new LocalFileStore());
  }

  LocalTier(FileStore files) {
    super(LocalFileStore.KIND, files);
  }
}
