package ucm.platform.memory;

import com.sun.jna.Native;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.Libc;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/**
 * A file in memory (tmpfs) that processes map and share, and whose bytes they lock to say that they
 * live.
 *
 * <p>A lock belongs to this open file (an <em>open file description lock</em> of fcntl(2)), not to the
 * process: two openings in one process exclude each other as two processes do, and the kernel drops the
 * locks when the file is closed or its process ends, however it ends. The bytes locked need not be there.
 *
 * <p>Thread-safe; nothing may be called after {@link #close}.
 */
public final class SharedFile implements AutoCloseable {

  private static final LibcFileOperations FILES = new LibcFileOperations();
  private static final String ATTRIBUTES = "unix:dev,ino,uid,mode,size";

  private final Path path;
  private final int fd;

  private SharedFile(Path path, int fd) {
    this.path = path;
    this.fd = fd;
  }

  /**
   * Opens a file for reading and writing; null when there is none.
   *
   * @throws FileException when it is no file, a symbolic link, or another user's
   */
  public static @Nullable SharedFile open(Path path) {
    int fd = FILES.openWrite(NativePath.of(path.toString()));
    if (fd == FileOperations.OTHER_TYPE) {
      throw new FileException("open as a file", path, Errno.ELOOP);
    }
    return fd == FileOperations.ABSENT ? null : new SharedFile(path, fd);
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

  /** Where it was opened. */
  public Path path() {
    return path;
  }

  /** Its size in bytes. */
  public long byteSize() {
    return (Long) attribute("size");
  }

  /** Its number in its file system. */
  public long inode() {
    return ((Number) attribute("ino")).longValue();
  }

  /** The number of the user it belongs to. */
  public int user() {
    return (Integer) attribute("uid");
  }

  /** Whether only its owner may read or write it. */
  public boolean isPrivate() {
    return ((Integer) attribute("mode") & 0077) == 0;
  }

  /** Whether its path still names this file. */
  public boolean isAtPath() {
    Map<String, Object> own = attributes();
    try {
      Map<String, Object> there = Files.readAttributes(path, ATTRIBUTES, LinkOption.NOFOLLOW_LINKS);
      return Objects.equals(own.get("ino"), there.get("ino"))
          && Objects.equals(own.get("dev"), there.get("dev"));
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      throw new FileException("stat", path, Errno.EIO);
    }
  }

  /** Locks one byte for this opening; false when another one has it locked. */
  public boolean tryLock(long at) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment flock = flock(arena, SharedMemoryCalls.F_WRLCK, at, 1);
      while (SharedMemoryCalls.lock(fd, SharedMemoryCalls.F_OFD_SETLK, flock) < 0) {
        int errno = Native.getLastError();
        if (errno == Errno.EAGAIN || errno == Errno.EACCES) {
          return false;
        }
        if (errno != Errno.EINTR) {
          throw new FileException("lock", path, errno);
        }
      }
      return true;
    }
  }

  /** Gives the lock of a byte back. */
  public void unlock(long at) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment flock = flock(arena, SharedMemoryCalls.F_UNLCK, at, 1);
      if (SharedMemoryCalls.lock(fd, SharedMemoryCalls.F_OFD_SETLK, flock) < 0) {
        throw new FileException("unlock", path, Native.getLastError());
      }
    }
  }

  /** Whether another opening has one of some bytes locked. */
  public boolean isLockedElsewhere(long from, long count) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment flock = flock(arena, SharedMemoryCalls.F_WRLCK, from, count);
      if (SharedMemoryCalls.lock(fd, SharedMemoryCalls.F_OFD_GETLK, flock) < 0) {
        throw new FileException("check the lock", path, Native.getLastError());
      }
      short found = flock.get(ValueLayout.JAVA_SHORT, SharedMemoryCalls.FLOCK_TYPE_AT);
      return found != SharedMemoryCalls.F_UNLCK;
    }
  }

  /**
   * Gives the file a size and real memory for all of it, so that touching it never fails later.
   *
   * @throws FileException when there is not enough (ENOSPC)
   */
  public void allocate(long byteSize) {
    int errno = SharedMemoryCalls.allocate(fd, byteSize);
    while (errno == Errno.EINTR) {
      errno = SharedMemoryCalls.allocate(fd, byteSize);
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

  /** Closes the file and so gives all of its locks back. */
  @Override
  public void close() {
    FILES.close(fd, NativePath.of(path.toString()));
  }

  private Object attribute(String name) {
    return Objects.requireNonNull(attributes().get(name));
  }

  private Map<String, Object> attributes() {
    try {
      // Of what is open, whatever has become of its name.
      return Files.readAttributes(Path.of("/proc/self/fd/" + fd), ATTRIBUTES);
    } catch (IOException e) {
      throw new FileException("stat", path, Errno.EIO);
    }
  }

  private static MemorySegment flock(Arena arena, short type, long from, long count) {
    MemorySegment flock = arena.allocate(SharedMemoryCalls.FLOCK_BYTES, Long.BYTES);
    flock.set(ValueLayout.JAVA_SHORT, SharedMemoryCalls.FLOCK_TYPE_AT, type);
    flock.set(ValueLayout.JAVA_LONG, SharedMemoryCalls.FLOCK_START_AT, from);
    flock.set(ValueLayout.JAVA_LONG, SharedMemoryCalls.FLOCK_LENGTH_AT, count);
    return flock;
  }
}
