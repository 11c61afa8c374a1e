package ucm.store.file;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.HealthCheck.Finding;

/**
 * Whether this user can use the blocks that are in a directory: another user id may have made them, as
 * containers with random ids on one NFS do. Looks at some folders, and at a file in each.
 */
final class DirectoryAccess {

  private static final int MOST_FOLDERS = 256;
  private static final String ADVICE =
      "blocks are for the user that wrote them: run all engines that share the directory with one"
          + " user id (runAsUser in Kubernetes), or give each a directory of its own";

  private DirectoryAccess() {}

  /** What is found in a directory that is there. */
  static Finding look(Path directory) {
    String subject = "blocks in " + directory;
    int folders = 0;
    int closed = 0;
    Path example = directory;
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
      Iterator<Path> all = entries.iterator();
      while (folders < MOST_FOLDERS && all.hasNext()) {
        Path folder = all.next();
        if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
          folders++;
          Path shut = shut(folder);
          if (shut != null) {
            closed++;
            example = shut;
          }
        }
      }
      return closed == 0
          ? Finding.ok(subject, folders == 0 ? "none yet" : "can be read and written")
          : Finding.failed(
              subject,
              "%s of the %s folders looked at are closed to user %s: %s"
                  .formatted(closed, folders, userId(), described(example)),
              ADVICE);
    } catch (AccessDeniedException | DirectoryIteratorException e) {
      return Finding.failed(subject, "cannot be listed: " + described(directory), ADVICE);
    } catch (IOException e) {
      return Finding.failed(subject, "cannot be looked at: " + e, "see dmesg; mount it again");
    }
  }

  /** The folder or a file in it that cannot be used; null when all looked at can. */
  private static @Nullable Path shut(Path folder) throws IOException {
    if (!Files.isReadable(folder) || !Files.isWritable(folder) || !Files.isExecutable(folder)) {
      return folder;
    }
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
      for (Path file : files) {
        if (Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
          return Files.isReadable(file) ? null : file;
        }
      }
    }
    return null;
  }

  /** The number of the user of this process. */
  static Object userId() {
    try {
      return Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (IOException e) {
      return System.getProperty("user.name");
    }
  }

  @SuppressWarnings("unchecked") // As the attribute is documented.
  private static String described(Path path) {
    try {
      Map<String, Object> found =
          Files.readAttributes(path, "unix:uid,permissions", LinkOption.NOFOLLOW_LINKS);
      return "%s belongs to user %s and is %s"
          .formatted(
              path,
              found.get("uid"),
              PosixFilePermissions.toString((Set<PosixFilePermission>) found.get("permissions")));
    } catch (IOException e) {
      return path.toString();
    }
  }
}
