package ucm.server;

import ucm.api.StoreException;

/** A daemon refuses what it is asked for. */
public final class RefusedException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final boolean isOfRequest;

  RefusedException(String message, boolean isOfRequest, Throwable cause) {
    super(message, cause);
    this.isOfRequest = isOfRequest;
  }

  /** Whether what was asked for is wrong, as a bad configuration is; else daemon and client do not fit. */
  public boolean isOfRequest() {
    return isOfRequest;
  }
}
