package ucm.cli.setup;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.cli.output.Figures;
import ucm.cli.runtime.Room;
import ucm.device.DeviceDriver;

/** What every pipeline needs of the machine: Java, the kernel, limits of the process, memory. */
public final class SystemHealthCheck implements HealthCheck {

  private static final long UNLIMITED = Long.MAX_VALUE;
  private static final long ENOUGH_FILES = 65_536;
  private static final long ENOUGH_LOCKED = 8L << 20;
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

  public SystemHealthCheck() {
    this(Path.of("/"));
  }

  SystemHealthCheck(Path root) {
    this.root = root;
  }

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    List<Finding> findings = new ArrayList<>();
    String processors = Runtime.getRuntime().availableProcessors() + " processors";
    findings.add(Finding.ok("Java", Runtime.version() + ", " + processors));
    findings.add(kernel());
    findings.add(
        limited(
            "open files",
            "",
            ENOUGH_FILES,
            "raise it to " + ENOUGH_FILES + " or more (ulimit -n, or LimitNOFILE= of the unit)"));
    findings.add(
        limited(
            "locked memory",
            " bytes",
            ENOUGH_LOCKED,
            "raise it (ulimit -l, or LimitMEMLOCK= of the unit): pinned memory may be refused"));
    // What stages need of it they say themselves.
    findings.add(Finding.ok("memory", gib(Room.availableMemory()) + " GiB of memory available"));
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

  private static Finding kernel() {
    String found =
        Stream.of("os.name", "os.version", "os.arch")
            .map(System::getProperty)
            .collect(Collectors.joining(" "));
    return found.startsWith("Linux ")
        ? Finding.ok("kernel", found)
        : Finding.failed("kernel", found, "the stores of files and GPUs need Linux");
  }

  private Finding limited(String subject, String unit, long enough, String advice) {
    long limit = limit("Max " + subject);
    String found = "limit of " + subject + " " + (limit == UNLIMITED ? "none" : limit + unit);
    return limit >= enough ? Finding.ok(subject, found) : Finding.warning(subject, found, advice);
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
    Instant now = Instant.now();
    String source = clockSource();
    String found = now.truncatedTo(ChronoUnit.SECONDS) + (source.isEmpty() ? "" : ", " + source);
    if (now.isBefore(EARLIEST)) {
      return Finding.warning(
          "clock", found, "it is late: let NTP (chrony) set it, as times of files order blocks");
    }
    return SLOW_CLOCKS.contains(source)
        ? Finding.warning(
            "clock",
            found,
            "each look at this clock is a slow access to a device: use tsc or the hypervisor's own"
                + " (/sys/devices/system/clocksource)")
        : Finding.ok("clock", found);
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
    try (Stream<String> lines = Files.lines(root.resolve("proc/self/limits"))) {
      return lines
          .filter(line -> line.startsWith(name))
          .map(line -> line.substring(name.length()).strip().split("\\s+", -1)[0])
          .filter(soft -> !soft.equals("unlimited"))
          .mapToLong(Long::parseLong)
          .findFirst()
          .orElse(UNLIMITED);
    } catch (IOException | UncheckedIOException | NumberFormatException e) {
      return UNLIMITED;
    }
  }

  private static String gib(long bytes) {
    return String.format(Locale.ROOT, "%.1f", bytes / Figures.GIB);
  }
}
