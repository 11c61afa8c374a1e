package ucm.platform.libc;

import com.sun.jna.Native;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.function.Predicate;

/** The file system calls of the C library. A call that a signal interrupts is made again. */
public final class LibcFileOperations implements FileOperations {

  private static final int FILE_MODE = 0b110_000_000;
  private static final int FOLDER_MODE = 0b111_000_000;
  // O_NONBLOCK means nothing for a file; a pipe that lies in its place must not hang us.
  private static final int OPEN_FLAGS = Libc.O_CLOEXEC | Libc.O_NOFOLLOW | Libc.O_NONBLOCK;

  private static final long NANOS = 1_000_000_000L;

  private static final ThreadLocal<NativeBuffer> TIMES =
      ThreadLocal.withInitial(() -> new NativeBuffer(Libc.TIMES_BYTES));

  private static final ThreadLocal<FileStat> STAT = ThreadLocal.withInitial(FileStat::new);

  @Override
  public int openRead(NativePath path) {
    return open(path, OPEN_FLAGS | Libc.O_RDONLY);
  }

  @Override
  public int openUnnoticed(NativePath path) {
    try {
      return open(path, OPEN_FLAGS | Libc.O_RDONLY | Libc.O_NOATIME);
    } catch (FileException e) {
      if (e.errno() != Errno.EPERM) {
        throw e;
      }
      return openRead(path);
    }
  }

  @Override
  public int openWrite(NativePath path) {
    return open(path, OPEN_FLAGS | Libc.O_RDWR);
  }

  @Override
  public int create(NativePath path) {
    return open(path, OPEN_FLAGS | Libc.O_RDWR | Libc.O_CREAT | Libc.O_EXCL);
  }

  private static int open(NativePath path, int flags) {
    while (true) {
      int fd = Libc.open(path, flags, FILE_MODE);
      if (fd >= 0) {
        return fd;
      }
      int errno = -fd;
      if (errno == Errno.ENOENT) {
        return ABSENT;
      }
      if ((flags & Libc.O_CREAT) == 0 && isOtherType(errno)) {
        return OTHER_TYPE;
      }
      retryOrThrow("open", path, errno);
    }
  }

  private static boolean isOtherType(int errno) {
    return errno == Errno.ELOOP
        || errno == Errno.EISDIR
        || errno == Errno.ENOTDIR
        || errno == Errno.ENXIO;
  }

  @Override
  public void setDirect(int fd, NativePath path) {
    // After the open and not in it, so that it is known by then that this is a file; what is set
    // replaces O_NONBLOCK, which has done its service.
    while (Libc.fcntl(fd, Libc.F_SETFL, Libc.O_DIRECT) < 0) {
      retryOrThrow("fcntl O_DIRECT", path, Native.getLastError());
    }
  }

  @Override
  public long size(NativePath path) {
    FileStat stat = STAT.get();
    if (!stat(path, FileStat.TYPE | FileStat.SIZE, stat)) {
      return ABSENT;
    }
    return stat.isFile() ? stat.size() : OTHER_TYPE;
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    return stat(path, FileStat.BASIC, into);
  }

  private static boolean stat(NativePath path, int wanted, FileStat into) {
    while (Libc.statx(path, wanted, into) < 0) {
      if (isAbsentOrThrow("statx", path)) {
        return false;
      }
    }
    return true;
  }

  /** Whether the last call has not found its file; false when it is to be made again. */
  private static boolean isAbsentOrThrow(String call, NativePath path) {
    int errno = Native.getLastError();
    if (errno == Errno.ENOENT || errno == Errno.ENOTDIR) {
      return true;
    }
    retryOrThrow(call, path, errno);
    return false;
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    NativeBuffer times = TIMES.get();
    times.bytes.setAtIndex(ValueLayout.JAVA_LONG, 0, Math.floorDiv(lastUseNanos, NANOS));
    times.bytes.setAtIndex(ValueLayout.JAVA_LONG, 1, Math.floorMod(lastUseNanos, NANOS));
    times.bytes.setAtIndex(ValueLayout.JAVA_LONG, 3, Libc.UTIME_OMIT);
    while (Libc.setTimes(path, times) < 0) {
      if (isAbsentOrThrow("utimensat", path)) {
        return false;
      }
    }
    return true;
  }

  @Override
  public long size(int fd, NativePath path) {
    // A third of the price of statx, and every file system answers it.
    long size = Libc.seekEnd(fd);
    if (size >= 0) {
      return size;
    }
    if (size == -Errno.ESPIPE) {
      return OTHER_TYPE;
    }
    throw new FileException("lseek", path, (int) -size);
  }

  @Override
  public long version(int fd, NativePath path) {
    FileStat stat = STAT.get();
    while (Libc.statx(fd, FileStat.SIZE | FileStat.NLINK | FileStat.CTIME, stat) < 0) {
      retryOrThrow("statx", path, Native.getLastError());
    }
    return stat.hasName()
        ? (31 * stat.statusChangedNanos() + stat.size()) & Long.MAX_VALUE
        : ABSENT;
  }

  @Override
  public long readAt(int fd, NativePath path, IoVector into, long offset) {
    while (true) {
      long bytes = Libc.preadv(fd, into, offset);
      if (bytes >= 0) {
        return bytes;
      }
      retryOrThrow("preadv", path, (int) -bytes);
    }
  }

  @Override
  public long writeAt(int fd, NativePath path, IoVector from, long offset) {
    while (true) {
      long bytes = Libc.pwritev(fd, from, offset);
      if (bytes >= 0) {
        return bytes;
      }
      retryOrThrow("pwritev", path, (int) -bytes);
    }
  }

  @Override
  public void allocate(int fd, NativePath path, long size) {
    // Writing to room set aside costs ext4 less than writing to a hole of the same size.
    while (Libc.fallocate(fd, 0, 0, size) < 0) {
      int errno = Native.getLastError();
      if (errno == Errno.EOPNOTSUPP || errno == Errno.ENOSYS) {
        while (Libc.ftruncate(fd, size) < 0) {
          retryOrThrow("ftruncate", path, Native.getLastError());
        }
        return;
      }
      retryOrThrow("fallocate", path, errno);
    }
  }

  @Override
  public void syncData(int fd, NativePath path) {
    while (Libc.fdatasync(fd) < 0) {
      retryOrThrow("fdatasync", path, Native.getLastError());
    }
  }

  @Override
  public void syncFolder(NativePath folder) {
    int fd = open(folder, Libc.O_CLOEXEC | Libc.O_DIRECTORY | Libc.O_RDONLY);
    if (fd < 0) {
      throw new FileException("open", folder, fd == ABSENT ? Errno.ENOENT : Errno.ENOTDIR);
    }
    try {
      while (Libc.fsync(fd) < 0) {
        retryOrThrow("fsync", folder, Native.getLastError());
      }
    } finally {
      close(fd, folder);
    }
  }

  @Override
  public void close(int fd, NativePath path) {
    int errno = -Libc.closeFile(fd);
    // Linux has closed it in any case, also with EINTR: a second call could close a stranger's.
    if (errno > 0 && errno != Errno.EINTR) {
      throw new FileException("close", path, errno);
    }
  }

  @Override
  public void rename(NativePath from, NativePath to) {
    if (Libc.rename(from.buffer, to.buffer) < 0) {
      throw new FileException("rename", from + " to " + to, Native.getLastError());
    }
  }

  @Override
  public boolean remove(NativePath path) {
    if (Libc.unlink(path.buffer) >= 0) {
      return true;
    }
    int errno = Native.getLastError();
    if (errno == Errno.ENOENT) {
      return false;
    }
    throw new FileException("unlink", path, errno);
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    if (Libc.mkdir(folder.buffer, FOLDER_MODE) >= 0) {
      return true;
    }
    int errno = Native.getLastError();
    if (errno == Errno.EEXIST) {
      FileStat stat = new FileStat();
      if (!stat(folder, stat) || stat.isFolder()) {
        return false;
      }
      errno = Errno.ENOTDIR;
    }
    throw new FileException("mkdir", folder, errno);
  }

  @Override
  public boolean tryLock(int fd, NativePath path) {
    while (Libc.flock(fd, Libc.LOCK_EX | Libc.LOCK_NB) < 0) {
      int errno = Native.getLastError();
      if (errno == Errno.EAGAIN) {
        return false;
      }
      retryOrThrow("flock", path, errno);
    }
    return true;
  }

  @Override
  public void forEachName(NativePath folder, Predicate<? super String> visitor) {
    Path path = Path.of(folder.toString());
    if (Files.exists(path, LinkOption.NOFOLLOW_LINKS)
        && !Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
      // The JDK would open a pipe to find out what it is, and wait; a link leads out of the tree.
      throw new FileException("opendir", folder, Errno.ENOTDIR);
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(path)) {
      for (Path entry : entries) {
        if (!visitor.test(entry.getFileName().toString())) {
          return;
        }
      }
    } catch (NoSuchFileException e) {
      // As if it were empty.
    } catch (NotDirectoryException e) {
      throw new FileException("opendir", folder, Errno.ENOTDIR);
    } catch (AccessDeniedException e) {
      throw new FileException("opendir", folder, Errno.EACCES);
    } catch (IOException | DirectoryIteratorException e) {
      throw new FileException("readdir", folder, Errno.EIO);
    }
  }

  private static void retryOrThrow(String call, NativePath path, int errno) {
    if (errno != Errno.EINTR) {
      throw new FileException(call, path, errno);
    }
  }
}
