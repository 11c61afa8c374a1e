package ucm.platform.memory;

import com.sun.jna.Native;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/**
 * A file in memory (tmpfs) that this process makes and others map too. Thread-safe; nothing may be called
 * after {@link #close}.
 */
public final class SharedFile implements AutoCloseable {

  private static final LibcFileOperations FILES = new LibcFileOperations();

  private final Path path;
  private final int fd;

  private SharedFile(Path path, int fd) {
    this.path = path;
    this.fd = fd;
  }

  /** Makes an empty file that only this user may read and write; null when there is one already. */
  public static @Nullable SharedFile create(Path path) {
    try {
      int fd = FILES.create(NativePath.of(path.toString()));
      if (fd < 0) {
        throw new FileException("create", path, Errno.ENOENT);
      }
      return new SharedFile(path, fd);
    } catch (FileException e) {
      if (e.errno() == Errno.EEXIST) {
        return null;
      }
      throw e;
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
    int _ = Libc.adviseHugePages(address, byteSize);
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
