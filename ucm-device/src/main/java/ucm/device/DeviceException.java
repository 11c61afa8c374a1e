package ucm.device;

import ucm.api.StoreException;

/**
 * A device could not do what it was asked, or cannot be used. The message names the call and the answer
 * of the driver, or what is missing, and what to do.
 */
public class DeviceException extends StoreException {

  private static final long serialVersionUID = 1L;

  /** With a message. */
  public DeviceException(String message) {
    super(message);
  }
}
