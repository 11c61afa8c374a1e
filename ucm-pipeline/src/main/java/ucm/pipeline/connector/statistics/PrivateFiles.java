package ucm.pipeline.connector.statistics;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Logs, traces and statistics are for their owner: files are made 0600 in folders made 0700, whatever the
 * umask is, and a link in their place is refused. What exists already keeps its mode.
 */
public final class PrivateFiles {

  private PrivateFiles() {}

  /** Makes a folder and those above it, where they are missing. */
  public static void createFolder(Path folder) throws IOException {
    Files.createDirectories(folder, mode("rwx------"));
  }

  /**
   * Opens a file for writing, and makes it where it is missing.
   *
   * @throws IOException also when there is a link, a pipe or the like in its place
   */
  public static FileChannel open(Path file, OpenOption... more) throws IOException {
    if (Files.exists(file, LinkOption.NOFOLLOW_LINKS)
        && !Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      // A pipe would hold us until it is read.
      throw new FileSystemException(file.toString(), null, "is no regular file");
    }
    Set<OpenOption> options = new HashSet<>(List.of(more));
    options.addAll(
        List.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS));
    return FileChannel.open(file, options, mode("rw-------"));
  }

  /** The same for a file whose old content goes. */
  public static OutputStream replace(Path file) throws IOException {
    return Channels.newOutputStream(open(file, StandardOpenOption.TRUNCATE_EXISTING));
  }

  private static FileAttribute<?> mode(String permissions) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions));
  }
}
