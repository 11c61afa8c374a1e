package ucm.device;

/**
 * There is no such device because nothing of its kind is installed here: no part of the image, or no
 * driver of the system. On a machine without an accelerator this is as it should be.
 */
public final class DeviceAbsentException extends DeviceException {

  private static final long serialVersionUID = 1L;

  /** Says what was looked for, and what to install where a device is wanted. */
  public DeviceAbsentException(String message) {
    super(message);
  }
}
