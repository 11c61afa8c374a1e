package ucm.api;

/** Something did not end within the time it was given. */
public final class StoreTimeoutException extends StoreException {

  private static final long serialVersionUID = 1L;

  /** Says what, and after how long. */
  public StoreTimeoutException(String message) {
    super(message);
  }
}
