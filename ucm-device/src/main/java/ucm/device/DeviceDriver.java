package ucm.device;

import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * The service: one kind of accelerator. Stateless and thread-safe; creating one touches neither the
 * driver nor a native library.
 */
public interface DeviceDriver {

  /** What configurations call it, lower case, for example {@code cuda}. */
  String name();

  /**
   * The devices there are, at least one.
   *
   * @throws DeviceAbsentException when the driver is not installed
   * @throws DeviceException when it is, and does not work or has no device
   */
  List<DeviceInfo> devices();

  /**
   * Makes a device ready for copies.
   *
   * @param deviceId its ordinal
   * @throws DeviceAbsentException when the driver is not installed
   * @throws DeviceException when it is, and there is no such device or it cannot be used
   */
  Device open(int deviceId);

  /** The driver of a name, if this runtime has it. */
  static Optional<DeviceDriver> find(String name) {
    return ServiceLoader.load(DeviceDriver.class, DeviceDriver.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .filter(driver -> driver.name().equals(name))
        .findFirst();
  }
}
