package ucm.server.device;

import java.util.HashMap;
import java.util.Map;
import ucm.device.Device;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;

/** The devices that the daemon copies with, each opened once, by the names that all processes know. Thread-safe. */
public final class SharedDevices implements AutoCloseable {

  // Guarded by this.
  private final Map<String, Device> open = new HashMap<>();

  /** Opens nothing yet. */
  public SharedDevices() {}

  /**
   * The device of a name.
   *
   * @param uuid as its driver tells it, 32 hexadecimal digits
   * @throws DeviceException when this process does not see it
   */
  synchronized Device require(String uuid) {
    return open.computeIfAbsent(uuid, SharedDevices::find);
  }

  private static Device find(String uuid) {
    DeviceDriver driver =
        DeviceDriver.find("cuda")
            .orElseThrow(() -> new DeviceException("this runtime has no driver for CUDA devices"));
    for (DeviceInfo info : driver.devices()) {
      if (info.uuid().equals(uuid)) {
        return driver.open(info.id());
      }
    }
    throw new DeviceException(
        "the daemon does not see the worker's GPU; give both processes or containers the same"
            + " GPUs");
  }

  /** Lets them go; what was opened on them must be closed. */
  @Override
  public synchronized void close() {
    open.values().forEach(Device::close);
    open.clear();
  }
}
