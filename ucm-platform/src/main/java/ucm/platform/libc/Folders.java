package ucm.platform.libc;

import java.nio.file.Files;
import java.nio.file.Path;

/** What is there of a directory that may be made later. */
public final class Folders {

  private Folders() {}

  /** The directory itself, or the nearest one above it that exists. */
  public static Path nearest(Path directory) {
    Path existing = directory.toAbsolutePath();
    while (existing.getParent() != null && !Files.exists(existing)) {
      existing = existing.getParent();
    }
    return existing;
  }
}
