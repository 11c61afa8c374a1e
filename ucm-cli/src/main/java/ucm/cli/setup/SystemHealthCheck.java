package ucm.cli.setup;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import ucm.api.admin.HealthCheck;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.cli.runtime.HostMemory;
import ucm.device.DeviceDriver;

/** What every pipeline needs of the machine: Java, the kernel, limits of the process, memory. */
public final class SystemHealthCheck implements HealthCheck {

  private static final long UNLIMITED = Long.MAX_VALUE;
  private static final long ENOUGH_FILES = 65_536;
  private static final long ENOUGH_LOCKED = 8L << 20;
  private static final double GIB = 1L << 30;
  private static final String CLOCK_SOURCE =
      "sys/devices/system/clocksource/clocksource0/current_clocksource";
  private static final List<String> SLOW_CLOCKS = List.of("hpet", "acpi_pm", "jiffies");
  // No machine that runs this Java has lived before.
  private static final Instant EARLIEST = Instant.parse("2025-09-01T00:00:00Z");

  // As the Cache declares it; only its value matters here.
  private static final String CUDA = "cuda";
  private static final ConfigKey<String> DEVICE =
      ConfigKey.choice("cache_device", "auto", "host", CUDA).defaultTo("auto");

  private final Path root;

  /** Checks this machine. */
  public SystemHealthCheck() {
    this(Path.of("/"));
  }

  SystemHealthCheck(Path root) {
    this.root = root;
  }

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    List<Finding> findings = new ArrayList<>();
    findings.add(java());
    findings.add(kernel());
    findings.add(openFiles());
    findings.add(lockedMemory());
    findings.add(memory());
    findings.add(shared());
    findings.add(clock());
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
        "%s %s %s"
            .formatted(
                System.getProperty("os.name"),
                System.getProperty("os.version"),
                System.getProperty("os.arch"));
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

  /** What stages need of it they say themselves. */
  private static Finding memory() {
    return Finding.ok("memory", gib(HostMemory.availableBytes()) + " GiB of memory available");
  }

  private Finding shared() {
    try {
      long free = Files.getFileStore(root.resolve("dev/shm")).getUsableSpace();
      return Finding.ok("/dev/shm", gib(free) + " GiB free");
    } catch (IOException e) {
      return Finding.warning(
          "/dev/shm", "is not there (" + e.getMessage() + ")", "mount a tmpfs to share buffers");
    }
  }

  /** Whether deadlines, and the times of files, can be trusted, and asked for cheaply. */
  private Finding clock() {
    String subject = "clock";
    Instant now = Instant.now();
    String source = clockSource();
    String found = now.truncatedTo(ChronoUnit.SECONDS) + (source.isEmpty() ? "" : ", " + source);
    if (now.isBefore(EARLIEST)) {
      return Finding.warning(
          subject, found, "it is late: let NTP (chrony) set it, as times of files order blocks");
    }
    return SLOW_CLOCKS.contains(source)
        ? Finding.warning(
            subject,
            found,
            "each look at this clock is a slow access to a device: use tsc or the hypervisor's own"
                + " (/sys/devices/system/clocksource)")
        : Finding.ok(subject, found);
  }

  private String clockSource() {
    try {
      return Files.readString(root.resolve(CLOCK_SOURCE)).strip();
    } catch (IOException e) {
      return "";
    }
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
