package ucm.store.posix;

import ucm.api.StoreName;
import ucm.store.common.FileSeam;

/** Keeps blocks in files of a POSIX file system, by ordinary calls. */
@StoreName("Posix")
public final class PosixStore extends FileStore {

  /** A store that is not configured. */
  public PosixStore() {
    super(StoreKind.POSIX);
  }

  /** A store on other system calls, for tests. */
  PosixStore(FileSeam files) {
    super(StoreKind.POSIX, files);
  }
}
