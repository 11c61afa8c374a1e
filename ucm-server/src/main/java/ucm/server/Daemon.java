package ucm.server;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;

/** Where the daemon of a user is, by the same rules as in the Python package, and what it says of itself. */
public final class Daemon {

  private static final String SOCKET = "ucm.sock";
  private static final int OTHERS = 0077;

  // Of st_mode.
  private static final int TYPE = 0170000;
  private static final int SOCKET_TYPE = 0140000;
  private static final int LINK_TYPE = 0120000;
  private static final int FILE_TYPE = 0100000;
  private static final int FOLDER_TYPE = 0040000;

  private Daemon() {}

  /** The socket unless it is said: {@code UCM_SOCKET}, else in {@code XDG_RUNTIME_DIR}, else in /tmp. */
  public static Path defaultSocket() {
    String named = System.getenv("UCM_SOCKET");
    if (named != null && !named.isBlank()) {
      return Path.of(named);
    }
    String runtime = System.getenv("XDG_RUNTIME_DIR");
    return runtime != null && !runtime.isBlank()
        ? Path.of(runtime, "ucm", SOCKET)
        : Path.of("/tmp", "ucm-" + userId(), SOCKET);
  }

  /** The number of the user of this process. */
  static Object userId() {
    try {
      return Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    } catch (IOException e) {
      throw new UncheckedIOException("cannot find out the user's number: " + FileFault.of(e), e);
    }
  }

  /** Where the token of a daemon lies. */
  static Path tokenPath(Path socket) {
    String name = socket.getFileName().toString();
    String stem = name.endsWith(".sock") ? name.substring(0, name.length() - 5) : name;
    return socket.resolveSibling(stem + ".token");
  }

  /**
   * Refuses anything that has the name of a socket and is none; that there is nothing is well.
   *
   * @throws StoreException when something else is there, which is left as it is
   */
  static void requireSocket(Path path) throws IOException {
    try {
      Object mode = Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS);
      if (((Integer) mode & TYPE) != SOCKET_TYPE) {
        throw new StoreException(
            "%s is no socket but a %s, which is left as it is: name another path"
                .formatted(path, kind((Integer) mode & TYPE)));
      }
    } catch (NoSuchFileException e) {
      return;
    }
  }

  private static String kind(int type) {
    return switch (type) {
      case FILE_TYPE -> "file";
      case FOLDER_TYPE -> "directory";
      case LINK_TYPE -> "link";
      default -> "pipe or a device";
    };
  }

  static byte[] token(Path socket) throws IOException {
    Path path = tokenPath(socket);
    requirePrivate(path);
    return Files.readAllBytes(path);
  }

  /**
   * The size and number of a file that must belong to this user alone.
   *
   * @throws IOException when others may read or write it, or it is no file
   */
  static Map<String, Object> requirePrivate(Path path) throws IOException {
    Map<String, Object> found =
        Files.readAttributes(
            path, "unix:isRegularFile,uid,mode,size,ino", LinkOption.NOFOLLOW_LINKS);
    if (!Boolean.TRUE.equals(found.get("isRegularFile"))
        || !userId().equals(found.get("uid"))
        || !(found.get("mode") instanceof Integer mode)
        || (mode & OTHERS) != 0) {
      throw new IOException(path + " must be a file of this user alone (mode 0600)");
    }
    return found;
  }

  /**
   * What a daemon serves, as {@code ucm serve status --json} prints it.
   *
   * @throws StoreException when none answers, or it refuses
   */
  public static String status(Path socket) {
    try (OperatorClient client = OperatorClient.open(socket, "ucm serve status")) {
      return client.status();
    }
  }

  /** The version of this code, that the build wrote into the module's descriptor. */
  static String version() {
    ModuleDescriptor module = Daemon.class.getModule().getDescriptor();
    return module == null ? "unknown" : module.rawVersion().orElse("unknown");
  }
}
