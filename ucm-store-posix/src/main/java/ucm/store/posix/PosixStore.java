package ucm.store.posix;

import ucm.api.StoreName;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;
import ucm.store.file.tier.TieredStore;

/**
 * Keeps blocks in files of a POSIX file system, by ordinary calls: alone, or as a local tier above a stage that
 * several nodes share.
 */
@StoreName(PosixStore.NAME)
public final class PosixStore extends TieredStore {

  static final String NAME = "Posix";
  static final StoreKind KIND = new StoreKind(NAME, true);

  /** A store that is not configured. */
  public PosixStore() {
    super(KIND, new PosixFiles());
  }

  @StoreName(NAME)
  private static final class PosixFiles extends FileStore {

    PosixFiles() {
      super(KIND);
    }
  }
}
