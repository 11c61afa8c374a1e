package ucm.device.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import ucm.api.CommonKeys;
import ucm.api.admin.HealthCheck;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.device.DeviceAbsentException;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;

/** Whether there is a driver, a GPU, the one that is asked for, and what GPUDirect would need. */
public final class CudaHealthCheck implements HealthCheck {

  private static final String SUBJECT = "GPU";
  private static final String NVIDIA_VENDOR = "0x10de";
  private static final double GIB = 1L << 30;

  // As the Cache declares them; only their values matter here.
  private static final ConfigKey<String> DEVICE =
      ConfigKey.choice("cache_device", "auto", "host", "cuda").defaultTo("auto");
  private static final ConfigKey<Boolean> USE_GDR = ConfigKey.flag("use_gdr").defaultTo(false);

  private final Path root;

  /** Checks this machine. */
  public CudaHealthCheck() {
    this(Path.of("/"));
  }

  /**
   * Checks below a root.
   *
   * @param root a replacement for {@code /} in a test
   */
  CudaHealthCheck(Path root) {
    this.root = root;
  }

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    List<Finding> findings = new ArrayList<>();
    String asked = config.get(DEVICE);
    int deviceId = config.get(CommonKeys.DEVICE_ID);
    try {
      List<DeviceInfo> devices = new CudaDriver().devices();
      for (DeviceInfo device : devices) {
        findings.add(
            Finding.ok(
                SUBJECT + " " + device.id(),
                String.format(
                    Locale.ROOT,
                    "%s, %.1f GiB, driver for %s",
                    device.name(),
                    device.memoryBytes() / GIB,
                    device.driver())));
      }
      if (deviceId >= devices.size() && !asked.equals("host")) {
        String found = "device_id is " + deviceId + ", and the driver shows " + devices.size();
        String advice = "correct device_id, or CUDA_VISIBLE_DEVICES; devices are counted from 0";
        findings.add(
            asked.equals("cuda")
                ? Finding.failed(SUBJECT, found, advice)
                : Finding.warning(SUBJECT, found, advice));
      }
    } catch (DeviceAbsentException e) {
      findings.add(absent(e, asked));
    } catch (DeviceException e) {
      String advice = "until then only host memory is moved; cache_device: host says so on purpose";
      findings.add(
          asked.equals("cuda")
              ? Finding.failed(SUBJECT, message(e), "cache_device: cuda asks for it")
              : Finding.warning(SUBJECT, message(e), advice));
    }
    if (config.get(USE_GDR)) {
      findings.add(direct());
    }
    return findings;
  }

  private Finding absent(DeviceException e, String asked) {
    if (asked.equals("cuda")) {
      return Finding.failed(SUBJECT, message(e), "cache_device: cuda asks for it");
    }
    if (hasNvidiaHardware()) {
      return Finding.warning(
          SUBJECT, "there is an NVIDIA device, and " + message(e), "install its driver");
    }
    return Finding.ok(SUBJECT, "none, only host memory is moved: " + message(e));
  }

  private Finding direct() {
    List<String> missing = new ArrayList<>();
    if (!Files.isDirectory(root.resolve("sys/module/nvidia_peermem"))) {
      missing.add("the kernel module nvidia_peermem (modprobe nvidia-peermem)");
    }
    if (!Files.exists(root.resolve("proc/driver/nvidia-fs/version"))) {
      missing.add("the kernel module nvidia_fs of GPUDirect Storage");
    }
    if (!hasEntries(root.resolve("sys/class/infiniband"))) {
      missing.add("an RDMA network adapter (nothing in /sys/class/infiniband)");
    }
    missing.add(
        "a store that moves between GPU and storage without host memory: this UCM has none");
    return Finding.failed(
        "GPUDirect", "use_gdr is true; missing: " + String.join("; ", missing), "set it to false");
  }

  private boolean hasNvidiaHardware() {
    try (Stream<Path> devices = Files.list(root.resolve("sys/bus/pci/devices"))) {
      return devices.anyMatch(device -> firstLine(device.resolve("vendor")).equals(NVIDIA_VENDOR));
    } catch (IOException e) {
      return false;
    }
  }

  private static boolean hasEntries(Path folder) {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.findAny().isPresent();
    } catch (IOException e) {
      return false;
    }
  }

  private static String firstLine(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      return "";
    }
  }

  private static String message(DeviceException e) {
    return String.valueOf(e.getMessage());
  }
}
