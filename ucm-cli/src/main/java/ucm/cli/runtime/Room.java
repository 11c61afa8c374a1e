package ucm.cli.runtime;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;
import ucm.platform.libc.Folders;

/** How much this machine can still take, asked before a command begins. */
public final class Room {

  private static final Path MEMINFO = Path.of("/proc/meminfo");
  private static final String AVAILABLE = "MemAvailable:";

  private Room() {}

  /** Refuses to write more than a folder's file system takes; {@code less} says what to do then. */
  public static void onDisk(String what, Path folder, long bytes, String less) {
    long free = freeBytes(folder);
    UsageException.when(
        bytes > free,
        "%s writes %s GB to %s, where %s GB are free: %s"
            .formatted(what, gigabytes(bytes), folder, gigabytes(free), less));
  }

  /** Refuses work that needs more memory than there is; {@code less} says how to ask for less. */
  public static void inMemory(String what, long need, String less) {
    long available = availableMemory();
    UsageException.when(
        need > available,
        "%s %s GB of memory, and %s GB are available: ask for less with %s"
            .formatted(what, gigabytes(need), gigabytes(available), less));
  }

  private static String gigabytes(long bytes) {
    return Figures.plain(bytes / Figures.GB);
  }

  /** Bytes that this user can write to a folder, which need not exist yet. */
  private static long freeBytes(Path folder) {
    try {
      return Files.getFileStore(Folders.nearest(folder)).getUsableSpace();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot look at " + folder + ": " + FileFault.of(e), e);
    }
  }

  /** Bytes that can be had without swapping; the largest number where Linux does not say. */
  public static long availableMemory() {
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
