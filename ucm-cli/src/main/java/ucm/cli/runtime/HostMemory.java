package ucm.cli.runtime;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** How much memory this machine can still give, as Linux sees it. */
public final class HostMemory {

  private static final Path MEMINFO = Path.of("/proc/meminfo");
  private static final String AVAILABLE = "MemAvailable:";

  private HostMemory() {}

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
