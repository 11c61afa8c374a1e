package ucm.cli.runtime;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import ucm.lite.trace.FileFault;

/** How much a file system can still take. */
public final class DiskSpace {

  private DiskSpace() {}

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
