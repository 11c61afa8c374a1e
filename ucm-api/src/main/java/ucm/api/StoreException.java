package ucm.api;

import org.jspecify.annotations.Nullable;

/**
 * A store could not do what it was asked. The message says what was asked, what was found, where, and
 * what to do; it is meant for the person who operates the store.
 */
public class StoreException extends RuntimeException {

  private static final long serialVersionUID = 1L;

  /** With a message alone. */
  public StoreException(String message) {
    super(message);
  }

  /** With a message and what led to it. */
  public StoreException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
