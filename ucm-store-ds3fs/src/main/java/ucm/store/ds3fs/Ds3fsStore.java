package ucm.store.ds3fs;

import ucm.api.StoreName;
import ucm.store.posix.FileStore;
import ucm.store.posix.StoreKind;

/** Keeps blocks in files of 3FS. */
@StoreName("Ds3fs")
public final class Ds3fsStore extends FileStore {

  /** A store that is not configured. */
  public Ds3fsStore() {
    super(new StoreKind("Ds3fs"));
  }
}
