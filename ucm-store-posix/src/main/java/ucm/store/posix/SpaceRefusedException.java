package ucm.store.posix;

import ucm.api.StoreException;

/** A block is not written, because the space that the store may take is used up. */
final class SpaceRefusedException extends StoreException {

  private static final long serialVersionUID = 1L;

  SpaceRefusedException(String message) {
    super(message);
  }
}
