package ucm.store.posix;

import ucm.api.StoreName;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;

/** Keeps blocks in files of a POSIX file system, by ordinary calls. */
@StoreName("Posix")
public final class PosixStore extends FileStore {

  static final StoreKind KIND = new StoreKind("Posix", true);

  /** A store that is not configured. */
  public PosixStore() {
    super(KIND);
  }
}
