package ucm.store.file.space;

import ucm.api.StoreException;

/** A block is not written, because the space that the store may take is used up. */
public final class SpaceRefusedException extends StoreException {

  private static final long serialVersionUID = 1L;

  SpaceRefusedException(String message) {
    super(message);
  }
}
