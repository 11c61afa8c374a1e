package ucm.device.cuda;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import jcuda.driver.CUdevice;
import jcuda.driver.CUresult;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;
import ucm.device.Device;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;

/** NVIDIA GPUs. */
public final class CudaDriver implements DeviceDriver {

  /** The oldest driver that JCuda of this release can work with: one for CUDA 12. */
  static final int OLDEST_VERSION = 12_000;

  private static final int NAME_BYTES = 256;
  private static final int BUS_ID_BYTES = 32;
  private static final long PIN_BYTES = 64L << 30;

  /** Does nothing. */
  public CudaDriver() {}

  @Override
  public String name() {
    return "cuda";
  }

  @Override
  public List<DeviceInfo> devices() {
    String driver = "CUDA " + version(start());
    int count = count();
    List<DeviceInfo> devices = new ArrayList<>(count);
    for (int id = 0; id < count; id++) {
      devices.add(info(id, driver));
    }
    return devices;
  }

  @Override
  public Device open(int deviceId) {
    return open(deviceId, PIN_BYTES);
  }

  /**
   * @param pinBytes the most host memory that a call pins
   */
  static CudaDevice open(int deviceId, long pinBytes) {
    String driver = "CUDA " + version(start());
    int count = count();
    if (deviceId < 0 || deviceId >= count) {
      throw new DeviceException(
          String.format(
              "there is no CUDA device %s: the driver shows %s, from 0; correct "
                  + "device_id, or CUDA_VISIBLE_DEVICES, now %s",
              deviceId, count, System.getenv().getOrDefault("CUDA_VISIBLE_DEVICES", "not set")));
    }
    return new CudaDevice(device(deviceId), info(deviceId, driver), pinBytes);
  }

  /** Loads and starts the driver, which may be done any number of times; its version. */
  private static int start() {
    CudaLibrary.require();
    int[] version = new int[1];
    CudaCall.check(
        JCudaDriver.cuDriverGetVersion(version), "cuDriverGetVersion", "the CUDA driver");
    if (version[0] < OLDEST_VERSION) {
      throw new DeviceException(
          ("the driver is for CUDA %s, and %s or newer is needed: install a newer NVIDIA driver"
                  + " (525 or later)")
              .formatted(version(version[0]), version(OLDEST_VERSION)));
    }
    CudaCall.check(JCudaDriver.cuInit(0), "cuInit", "the CUDA driver");
    return version[0];
  }

  private static int count() {
    int[] count = new int[1];
    CudaCall.check(JCudaDriver.cuDeviceGetCount(count), "cuDeviceGetCount", "the CUDA driver");
    if (count[0] == 0) {
      throw CudaCall.failed(CUresult.CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount", "the CUDA driver");
    }
    return count[0];
  }

  private static CUdevice device(int id) {
    CUdevice device = new CUdevice();
    check(JCudaDriver.cuDeviceGet(device, id), "cuDeviceGet", id);
    return device;
  }

  private static void check(int result, String call, int id) {
    CudaCall.check(result, call, "CUDA device " + id);
  }

  private static DeviceInfo info(int id, String driver) {
    CUdevice device = device(id);
    byte[] name = new byte[NAME_BYTES];
    check(JCudaDriver.cuDeviceGetName(name, NAME_BYTES, device), "cuDeviceGetName", id);
    long[] bytes = new long[1];
    check(JCudaDriver.cuDeviceTotalMem(bytes, device), "cuDeviceTotalMem", id);
    CUuuid uuid = new CUuuid();
    check(JCudaDriver.cuDeviceGetUuid(uuid, device), "cuDeviceGetUuid", id);
    return new DeviceInfo(
        id,
        new String(name, StandardCharsets.UTF_8).replace("\0", "").strip(),
        bytes[0],
        driver,
        HexFormat.of().formatHex(uuid.bytes),
        numaNode(Path.of("/sys/bus/pci/devices"), busId(device)));
  }

  /** Where the device is on the PCI bus; empty where the driver does not say. */
  private static String busId(CUdevice device) {
    String[] id = new String[1];
    int result = JCudaDriver.cuDeviceGetPCIBusId(id, BUS_ID_BYTES, device);
    return result == CUresult.CUDA_SUCCESS && id[0] != null ? id[0].replace("\0", "").strip() : "";
  }

  /**
   * Which node of the host's memory a device of the PCI bus is attached to; -1 where it is unknown.
   *
   * @param devices the folder in which Linux says so, a replacement for it in a test
   */
  static int numaNode(Path devices, String busId) {
    if (busId.isEmpty()) {
      return -1;
    }
    try {
      // The driver writes letters large, the kernel small.
      Path file = devices.resolve(busId.toLowerCase(Locale.ROOT)).resolve("numa_node");
      return Math.max(Integer.parseInt(Files.readString(file).strip()), -1);
    } catch (IOException | InvalidPathException | NumberFormatException e) {
      return -1;
    }
  }

  private static String version(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }
}
