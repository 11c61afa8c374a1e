package ucm.server;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.lite.trace.FileFault;
import ucm.pipeline.connector.statistics.PrivateFiles;
import ucm.platform.memory.SharedFile;

/**
 * The directory of a socket: only its user may enter it, and one daemon at a time uses it. Holds the
 * socket, the token that clients must know, and a lock that ends with the process. What lies at one of these
 * names and is not what a daemon leaves there stays as it is, and the daemon does not start.
 */
public final class ServerDirectory implements AutoCloseable {

  private static final Set<PosixFilePermission> PRIVATE_DIRECTORY =
      PosixFilePermissions.fromString("rwx------");
  private static final Logger LOG = LoggerFactory.getLogger(ServerDirectory.class);
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final String SEGMENTS = "ucm-slots-";
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
   * @throws StoreException when another daemon uses it, others may enter it, or something else has one of
   *     the names
   */
  public static ServerDirectory take(Path socketPath) {
    Path socket = socketPath.toAbsolutePath().normalize();
    if (socket.toString().getBytes(StandardCharsets.UTF_8).length > MOST_PATH_BYTES) {
      throw new StoreException(
          "the path of a socket has at most " + MOST_PATH_BYTES + " bytes; found " + socket);
    }
    Path directory = Objects.requireNonNull(socket.getParent(), "a file has a directory");
    Path lockPath = socket.resolveSibling(socket.getFileName() + ".lock");
    try {
      Daemon.requireSocket(socket);
      Daemon.requireSocket(fresh(socket));
      requireFile(lockPath, 0);
      requireFile(Daemon.tokenPath(socket), TOKEN_BYTES);
      Files.createDirectories(directory, PosixFilePermissions.asFileAttribute(PRIVATE_DIRECTORY));
      requirePrivate(directory);
      FileChannel lockFile = PrivateFiles.open(lockPath);
      @Nullable FileLock lock = tryLock(lockFile);
      if (lock == null || answers(socket)) {
        lockFile.close();
        throw new StoreException(
            "another %s answers at %s: use it, or name another one with --socket"
                .formatted(lock == null ? "ucm serve" : "program", socket));
      }
      ServerDirectory taken = new ServerDirectory(socket, lockFile, lock);
      Files.deleteIfExists(socket);
      taken.writeToken();
      return taken;
    } catch (IOException e) {
      throw new StoreException("cannot use " + directory + " for a socket: " + FileFault.of(e), e);
    }
  }

  /** Where the socket is before it listens. */
  static Path fresh(Path socket) {
    return socket.resolveSibling(socket.getFileName() + ".new");
  }

  /** Refuses what a daemon has not left there. */
  private static void requireFile(Path path, int size) throws IOException {
    try {
      Map<String, Object> found =
          Files.readAttributes(path, "unix:isRegularFile,size", LinkOption.NOFOLLOW_LINKS);
      if (!Boolean.TRUE.equals(found.get("isRegularFile"))
          || ((Number) Objects.requireNonNull(found.get("size"))).longValue() != size) {
        throw new StoreException(
            path
                + " is in the way, and no file of ucm serve; it is left as it is: move it, or name"
                + " another path with --socket");
      }
    } catch (NoSuchFileException e) {
      // It will be made.
      return;
    }
  }

  private static boolean answers(Path socket) {
    try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      return channel.isConnected();
    } catch (IOException e) {
      return false;
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
    try (FileChannel file = PrivateFiles.open(path, StandardOpenOption.CREATE_NEW)) {
      file.write(ByteBuffer.wrap(token));
    }
  }

  public Path socket() {
    return socket;
  }

  /** What clients must know; not copied. */
  byte[] token() {
    return token;
  }

  /**
   * Where staging segments are made: what stands before their numbers, different at each start. Those of
   * this user's daemons that were killed are removed. Containers may share /dev/shm, and each has its daemon
   * at the same path: a segment is left alone as long as the process that made it holds its lock.
   */
  String segmentPrefix() {
    try {
      SharedFile.removeDead(SHARED_MEMORY, SEGMENTS + Daemon.userId() + "-");
    } catch (IOException e) {
      LOG.warn("segments of daemons that were killed stay: {}", FileFault.of(e));
    }
    String start = Long.toHexString(new SecureRandom().nextLong());
    return SHARED_MEMORY.resolve(segmentNames(socket) + start + "-").toString();
  }

  /** What the names of the segments begin with that daemons of a socket make. */
  static String segmentNames(Path socket) {
    String place = Integer.toHexString(socket.toString().hashCode());
    return SEGMENTS + Daemon.userId() + "-" + place + "-";
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
