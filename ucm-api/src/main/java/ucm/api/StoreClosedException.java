package ucm.api;

/** A store was used after it was closed. */
public final class StoreClosedException extends StoreException {

  private static final long serialVersionUID = 1L;

  /** Names the store. */
  public StoreClosedException(String storeName) {
    super("Store " + storeName + " is closed");
  }
}
