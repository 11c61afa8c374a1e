package ucm.store.s3;

import ucm.api.StoreName;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;
import ucm.store.file.tier.TieredStore;

/** A local tier above the store, as {@code Posix} is. */
@StoreName(UpperTier.NAME)
final class UpperTier extends TieredStore {

  static final String NAME = "Posix";
  private static final StoreKind KIND = new StoreKind(NAME, true);

  UpperTier() {
    super(KIND, new UpperFiles());
  }

  @StoreName(NAME)
  private static final class UpperFiles extends FileStore {

    UpperFiles() {
      super(KIND);
    }
  }
}
