package ucm.dist;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import ucm.api.Checkup;
import ucm.api.ConfigKey;
import ucm.api.StoreConfig;
import ucm.device.DeviceDriver;

/** What every pipeline needs of the machine: Java, the kernel, limits of the process, memory. */
public final class SystemCheckup implements Checkup {

  private static final long UNLIMITED = Long.MAX_VALUE;
  private static final long ENOUGH_FILES = 65_536;
  private static final long ENOUGH_LOCKED = 8L << 20;
  private static final double GIB = 1L << 30;

  // As the Cache declares them; only their values matter here.
  private static final ConfigKey<Double> BUFFER =
      ConfigKey.number("cache_buffer_capacity_gb").range(0, 1 << 20).defaultTo(0.0);
  private static final ConfigKey<Boolean> SHARED =
      ConfigKey.flag("share_buffer_enable").defaultTo(false);

  private static final String CUDA = "cuda";
  private static final ConfigKey<String> DEVICE =
      ConfigKey.choice("cache_device", "auto", "host", CUDA).defaultTo("auto");

  private final Path root;

  /** Looks at this machine. */
  public SystemCheckup() {
    this(Path.of("/"));
  }

  /**
   * Looks below a root.
   *
   * @param root what stands in for {@code /} in a test
   */
  SystemCheckup(Path root) {
    this.root = root;
  }

  @Override
  public List<Finding> look(StoreConfig config) {
    List<Finding> findings = new ArrayList<>();
    findings.add(java());
    findings.add(kernel());
    findings.add(openFiles());
    findings.add(lockedMemory());
    findings.add(memory(config));
    findings.add(shared(config));
    if (config.get(DEVICE).equals(CUDA) && DeviceDriver.find(CUDA).isEmpty()) {
      findings.add(
          Finding.failed(
              "GPU",
              "this image has no part for CUDA (module ucm.device.cuda)",
              "cache_device: cuda asks for it: use the image with it"));
    }
    return findings;
  }

  private static Finding java() {
    return Finding.ok(
        "Java",
        Runtime.version() + ", " + Runtime.getRuntime().availableProcessors() + " processors");
  }

  private static Finding kernel() {
    String found =
        System.getProperty("os.name")
            + " "
            + System.getProperty("os.version")
            + " "
            + System.getProperty("os.arch");
    return found.startsWith("Linux ")
        ? Finding.ok("kernel", found)
        : Finding.failed("kernel", found, "the stores of files and GPUs need Linux");
  }

  private Finding openFiles() {
    long limit = limit("Max open files");
    String found = "limit of open files " + text(limit);
    return limit >= ENOUGH_FILES
        ? Finding.ok("open files", found)
        : Finding.warning(
            "open files",
            found,
            "raise it to " + ENOUGH_FILES + " or more (ulimit -n, or LimitNOFILE= of the unit)");
  }

  private Finding lockedMemory() {
    long limit = limit("Max locked memory");
    String found = "limit of locked memory " + (limit == UNLIMITED ? "none" : limit + " bytes");
    return limit >= ENOUGH_LOCKED
        ? Finding.ok("locked memory", found)
        : Finding.warning(
            "locked memory",
            found,
            "raise it (ulimit -l, or LimitMEMLOCK= of the unit): io_uring may be refused");
  }

  private Finding memory(StoreConfig config) {
    long available = HostMemory.availableBytes();
    double wanted = config.get(SHARED) ? 0 : config.get(BUFFER);
    String found = gib(available) + " GiB of memory available";
    return wanted * GIB <= available
        ? Finding.ok("memory", found)
        : Finding.failed(
            "memory",
            found,
            "cache_buffer_capacity_gb is " + wanted + ": lower it for this machine");
  }

  private Finding shared(StoreConfig config) {
    Path folder = root.resolve("dev/shm");
    long free;
    try {
      free = Files.getFileStore(folder).getUsableSpace();
    } catch (IOException e) {
      return Finding.warning(
          "/dev/shm", "is not there (" + e.getMessage() + ")", "mount a tmpfs to share buffers");
    }
    double wanted = config.get(SHARED) ? config.get(BUFFER) : 0;
    String found = gib(free) + " GiB free";
    return wanted * GIB <= free
        ? Finding.ok("/dev/shm", found)
        : Finding.failed(
            "/dev/shm",
            found,
            "share_buffer_enable is true and cache_buffer_capacity_gb is "
                + wanted
                + ": lower it, or enlarge /dev/shm (mount -o remount,size=..., or the container's"
                + " --shm-size)");
  }

  /** The soft limit of a name; unlimited where it cannot be read. */
  private long limit(String name) {
    try {
      for (String line : Files.readAllLines(root.resolve("proc/self/limits"))) {
        if (line.startsWith(name)) {
          String soft = line.substring(name.length()).strip().split("\\s+", -1)[0];
          return soft.equals("unlimited") ? UNLIMITED : Long.parseLong(soft);
        }
      }
    } catch (IOException | NumberFormatException e) {
      return UNLIMITED;
    }
    return UNLIMITED;
  }

  private static String text(long limit) {
    return limit == UNLIMITED ? "none" : Long.toString(limit);
  }

  private static String gib(long bytes) {
    return String.format(Locale.ROOT, "%.1f", bytes / GIB);
  }
}
