package ucm.cli.runtime;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import ucm.cli.output.UsageException;

/** How much memory this machine can still give, as Linux sees it. */
public final class HostMemory {

  private static final Path MEMINFO = Path.of("/proc/meminfo");
  private static final String AVAILABLE = "MemAvailable:";

  private HostMemory() {}

  /** Refuses work that needs more than there is; {@code less} says how to ask for less. */
  public static void require(String what, long need, String less) {
    long available = availableBytes();
    UsageException.when(
        need > available,
        String.format(
            Locale.ROOT,
            "%s %.2f GB of memory, and %.2f GB are available: ask for less with %s",
            what,
            need / 1e9,
            available / 1e9,
            less));
  }

  /** Bytes that can be had without swapping; the largest number where Linux does not say. */
  public static long availableBytes() {
    try {
      for (String line : Files.readAllLines(MEMINFO)) {
        if (line.startsWith(AVAILABLE)) {
          String kib = line.substring(AVAILABLE.length()).replace("kB", "").strip();
          return Long.parseLong(kib) * 1024;
        }
      }
    } catch (IOException | NumberFormatException e) {
      // Not told; the allocation itself will say.
    }
    return Long.MAX_VALUE;
  }
}
