package ucm.server;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;
import ucm.server.client.Daemon;

/**
 * The directory of a socket: only its user may enter it, and one daemon at a time uses it. Holds the
 * socket, the token that clients must know, and a lock that ends with the process.
 */
final class ServerDirectory implements AutoCloseable {

  private static final Set<PosixFilePermission> PRIVATE_DIRECTORY =
      PosixFilePermissions.fromString("rwx------");
  private static final FileAttribute<?> PRIVATE_FILE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
  private static final int TOKEN_BYTES = 32;
  // sun_path has 108 bytes, the last one 0; four are for the name before it listens.
  private static final int MOST_PATH_BYTES = 103;

  private final Path socket;
  private final FileChannel lockFile;
  private final FileLock lock;
  private final byte[] token = new byte[TOKEN_BYTES];

  private ServerDirectory(Path socket, FileChannel lockFile, FileLock lock) {
    this.socket = socket;
    this.lockFile = lockFile;
    this.lock = lock;
  }

  /**
   * Takes a directory over.
   *
   * @throws StoreException when another daemon uses it, or others may enter it
   */
  static ServerDirectory take(Path socketPath) {
    Path socket = socketPath.toAbsolutePath().normalize();
    if (socket.toString().getBytes(StandardCharsets.UTF_8).length > MOST_PATH_BYTES) {
      throw new StoreException(
          "the path of a socket has at most " + MOST_PATH_BYTES + " bytes; found " + socket);
    }
    Path directory = Objects.requireNonNull(socket.getParent(), "a file has a directory");
    try {
      Files.createDirectories(directory, PosixFilePermissions.asFileAttribute(PRIVATE_DIRECTORY));
      requirePrivate(directory);
      FileChannel lockFile =
          FileChannel.open(
              directory.resolve(socket.getFileName() + ".lock"),
              Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE),
              PRIVATE_FILE);
      @Nullable FileLock lock = tryLock(lockFile);
      if (lock == null) {
        lockFile.close();
        throw new StoreException(
            "another ucm serve answers at "
                + socket
                + ": use it, or name another one with --socket");
      }
      ServerDirectory taken = new ServerDirectory(socket, lockFile, lock);
      Files.deleteIfExists(socket);
      taken.writeToken();
      return taken;
    } catch (IOException e) {
      throw new StoreException("cannot use " + directory + " for a socket: " + FileFault.of(e), e);
    }
  }

  private static @Nullable FileLock tryLock(FileChannel file) throws IOException {
    try {
      return file.tryLock();
    } catch (OverlappingFileLockException e) {
      // A daemon of this process.
      return null;
    }
  }

  private static void requirePrivate(Path directory) throws IOException {
    Object owner = Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    boolean isPrivate =
        Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)
            && owner.equals(Daemon.userId())
            && Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS)
                .equals(PRIVATE_DIRECTORY);
    if (!isPrivate) {
      throw new StoreException(
          directory
              + " must be a directory of this user that only they may enter (mode 0700): change it,"
              + " or name another one with --socket");
    }
  }

  private void writeToken() throws IOException {
    new SecureRandom().nextBytes(token);
    Path path = Daemon.tokenPath(socket);
    Files.deleteIfExists(path);
    try (FileChannel file =
        FileChannel.open(
            path, Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), PRIVATE_FILE)) {
      file.write(ByteBuffer.wrap(token));
    }
  }

  Path socket() {
    return socket;
  }

  /** What clients must know; not copied. */
  byte[] token() {
    return token;
  }

  /**
   * Where staging segments are made: what stands before their numbers. Those of a daemon of this
   * directory that was killed are removed.
   */
  String segmentPrefix() {
    String prefix = segmentNames(socket);
    try (DirectoryStream<Path> left = Files.newDirectoryStream(Path.of("/dev/shm"), prefix + "*")) {
      for (Path segment : left) {
        Files.deleteIfExists(segment);
      }
    } catch (IOException e) {
      throw new StoreException("cannot clear /dev/shm: " + FileFault.of(e), e);
    }
    return "/dev/shm/" + prefix;
  }

  /** What the names of a daemon's segments begin with. */
  static String segmentNames(Path socket) {
    return String.format(
        "ucm-serve-%s-%s-", Daemon.userId(), Integer.toHexString(socket.toString().hashCode()));
  }

  @Override
  public void close() {
    try {
      Files.deleteIfExists(socket);
      Files.deleteIfExists(Daemon.tokenPath(socket));
      lock.release();
      lockFile.close();
    } catch (IOException e) {
      throw new UncheckedIOException(
          "cannot leave " + socket.getParent() + ": " + FileFault.of(e), e);
    }
  }
}
