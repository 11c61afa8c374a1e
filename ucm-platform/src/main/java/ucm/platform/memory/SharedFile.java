package ucm.platform.memory;

import com.sun.jna.Native;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/**
 * A file in memory (tmpfs) that this process makes and others map too. Thread-safe; nothing may be called
 * after {@link #close}.
 *
 * <p>Its maker holds a lock on it, which the kernel drops when that process dies, however it dies: {@link
 * #removeDead} tells by it which files have no maker any more, also in containers that share the file system
 * and have process numbers of their own.
 */
public final class SharedFile implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(SharedFile.class);
  private static final LibcFileOperations FILES = new LibcFileOperations();
  private static final int ATTEMPTS = 16;

  private final Path path;
  private final int fd;

  private SharedFile(Path path, int fd) {
    this.path = path;
    this.fd = fd;
  }

  /** Makes an empty file that only this user may read and write; null when there is one already. */
  public static @Nullable SharedFile create(Path path) {
    NativePath name = NativePath.of(path.toString());
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      int fd;
      try {
        fd = FILES.create(name);
      } catch (FileException e) {
        if (e.errno() == Errno.EEXIST) {
          return null;
        }
        throw e;
      }
      if (fd < 0) {
        throw new FileException("create", path, Errno.ENOENT);
      }
      if (isOurs(fd, name)) {
        return new SharedFile(path, fd);
      }
      FILES.close(fd, name);
    }
    throw new FileException("lock", path, Errno.EAGAIN);
  }

  /** False when a process that removes the files of the dead was faster than the lock. */
  private static boolean isOurs(int fd, NativePath name) {
    boolean isOurs = false;
    try {
      isOurs = FILES.tryLock(fd, name) && FILES.size(name) >= 0;
      return isOurs;
    } finally {
      if (!isOurs) {
        FILES.remove(name);
      }
    }
  }

  /**
   * Removes the files of this user whose makers are dead; what cannot be told is left.
   *
   * @param folder of tmpfs
   * @param prefix of the names of all such files
   * @throws IOException when the folder cannot be read
   */
  public static void removeDead(Path folder, String prefix) throws IOException {
    Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    try (DirectoryStream<Path> found = Files.newDirectoryStream(folder, prefix + "*")) {
      for (Path file : found) {
        if (isOf(user, file)) {
          removeDead(NativePath.of(file.toString()));
        }
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
  }

  private static boolean isOf(Object user, Path file) {
    try {
      return user.equals(Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS));
    } catch (IOException e) {
      // Removed meanwhile.
      return false;
    }
  }

  private static void removeDead(NativePath name) {
    try {
      int fd = FILES.openWrite(name);
      if (fd < 0) {
        return;
      }
      try {
        if (FILES.tryLock(fd, name)) {
          FILES.remove(name);
        }
      } finally {
        FILES.close(fd, name);
      }
    } catch (FileException e) {
      LOG.debug("{} is left: {}", name, e.getMessage());
    }
  }

  /** Where it was made. */
  public Path path() {
    return path;
  }

  /** Its number in its file system, whatever has become of its name. */
  public long inode() {
    try {
      return ((Number) Files.getAttribute(Path.of("/proc/self/fd/" + fd), "unix:ino")).longValue();
    } catch (IOException e) {
      throw new FileException("stat", path, Errno.EIO);
    }
  }

  /**
   * Gives the file a size and real memory for all of it, so that touching it never fails later.
   *
   * @throws FileException when there is not enough (ENOSPC)
   */
  public void allocate(long byteSize) {
    int errno = Libc.posix_fallocate(fd, 0, byteSize);
    while (errno == Errno.EINTR) {
      errno = Libc.posix_fallocate(fd, 0, byteSize);
    }
    if (errno != 0) {
      throw new FileException("posix_fallocate", path, errno);
    }
  }

  /**
   * Maps the beginning of the file. The mapping outlives the opening.
   *
   * @param arena unmaps it when it is closed
   */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  public MemorySegment map(long byteSize, Arena arena) {
    long address = Libc.mapShared(fd, byteSize, 0);
    if (address == -1) {
      throw new FileException("mmap", path, Native.getLastError());
    }
    MemorySegment mapped =
        MemorySegment.ofAddress(address)
            .reinterpret(byteSize, arena, memory -> Libc.munmap(memory.address(), byteSize));
    // Refused where shared memory has no huge pages; then it has small ones.
    var _ = Libc.adviseHugePages(address, byteSize);
    return mapped;
  }

  /** Removes the name; the memory is freed when no process has it open or mapped. */
  public void remove() {
    FILES.remove(NativePath.of(path.toString()));
  }

  /** Closes the file. */
  @Override
  public void close() {
    FILES.close(fd, NativePath.of(path.toString()));
  }
}
