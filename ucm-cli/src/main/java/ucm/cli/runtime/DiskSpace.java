package ucm.cli.runtime;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;

/** How much a file system can still take. */
public final class DiskSpace {

  private DiskSpace() {}

  /** Refuses to write more than a folder's file system takes; {@code less} says what to do then. */
  public static void require(String what, Path folder, long bytes, String less) {
    long free = freeBytes(folder);
    UsageException.when(
        bytes > free,
        String.format(
            Locale.ROOT,
            "%s writes %.2f GB to %s, where %.2f GB are free: %s",
            what,
            bytes / 1e9,
            folder,
            free / 1e9,
            less));
  }

  /** Bytes that this user can write to a folder, which need not exist yet. */
  public static long freeBytes(Path folder) {
    try {
      Path existing = folder.toAbsolutePath();
      while (existing.getParent() != null && !Files.exists(existing)) {
        existing = existing.getParent();
      }
      return Files.getFileStore(existing).getUsableSpace();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot look at " + folder + ": " + FileFault.of(e), e);
    }
  }
}
