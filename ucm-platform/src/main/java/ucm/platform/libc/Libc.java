package ucm.platform.libc;

import com.sun.jna.Native;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;
import java.nio.file.Path;

/**
 * The C library, as far as stores need it: JNA direct mapping, constants of Linux on 64 bits.
 *
 * <p>A function that returns -1 has left its error number in {@link Native#getLastError()}, which JNA
 * keeps per thread from the return of the call on; reading it costs nothing on the path of success, unlike
 * a method that throws. Those that are called for every file return their error number, negated.
 */
public final class Libc {

  private static final boolean IS_ARM = "aarch64".equals(System.getProperty("os.arch"));

  // Flags of open(2).
  static final int O_RDONLY = 0;
  static final int O_WRONLY = 1;
  static final int O_RDWR = 2;
  static final int O_CREAT = 0x40;
  static final int O_EXCL = 0x80;
  static final int O_APPEND = 0x400;
  static final int O_NONBLOCK = 0x800;
  static final int O_NOATIME = 0x40000;
  static final int O_CLOEXEC = 0x80000;
  static final int O_DIRECTORY = IS_ARM ? 0x4000 : 0x10000;
  static final int O_NOFOLLOW = IS_ARM ? 0x8000 : 0x20000;
  static final int O_DIRECT = IS_ARM ? 0x10000 : 0x4000;

  // Of fcntl(2), utimensat(2), flock(2).
  static final int F_SETFL = 4;
  static final long UTIME_OMIT = 0x3ffffffe;
  static final int TIMES_BYTES = 32;
  static final int LOCK_EX = 2;
  static final int LOCK_NB = 4;

  /** Bytes of {@code struct rusage}, and where its times and the count of its waits are. */
  public static final int RUSAGE_BYTES = 144;

  public static final int RUSAGE_USER_AT = 0;
  public static final int RUSAGE_SYSTEM_AT = 16;
  public static final int RUSAGE_WAITS_AT = 128;

  private static final int RUSAGE_THREAD = 1;
  private static final int RLIMIT_NOFILE = 7;
  private static final int RLIMIT_BYTES = 16;
  private static final int USUAL_OPEN_FILES = 1024;
  private static final int SEEK_END = 2;

  // Of the calls that take names.
  private static final int AT_FDCWD = -100;
  private static final int AT_SYMLINK_NOFOLLOW = 0x100;
  private static final int AT_EMPTY_PATH = 0x1000;
  private static final NativePath EMPTY_PATH = NativePath.of("");

  // Of mmap(2) and madvise(2). Pages of MAP_HUGETLB are those that the administrator reserved.
  private static final int PROT_READ_WRITE = 1 | 2;
  private static final int MAP_SHARED = 0x1;
  private static final int MAP_PRIVATE = 0x2;
  private static final int MAP_ANONYMOUS = 0x20;
  private static final int MAP_NORESERVE = 0x4000;
  private static final int MAP_POPULATE = 0x8000;
  private static final int MAP_HUGETLB = 0x40000;
  private static final int MAP_HUGE_2MB = 21 << 26;
  private static final int MFD_CLOEXEC = 1;
  private static final int MADV_DONTNEED = 4;
  private static final int MADV_REMOVE = 9;
  private static final int MADV_HUGEPAGE = 14;
  private static final int MADV_POPULATE_WRITE = 23;

  static {
    if (!Platform.isLinux() || Native.POINTER_SIZE != Long.BYTES) {
      throw new ExceptionInInitializerError(
          String.format(
              "file stores need Linux on a 64-bit processor; found %s on %s",
              System.getProperty("os.name"), System.getProperty("os.arch")));
    }
    Native.register(Libc.class, "c");
  }

  private Libc() {}

  private static long orError(long result) {
    return result < 0 ? -Native.getLastError() : result;
  }

  /** Opens a file: its descriptor, or the error number, negated. */
  static int open(NativePath path, int flags, int mode) {
    return (int) orError(open(path.buffer, flags, mode));
  }

  /** Has what this process writes to its standard output and error appended to a file that is there. */
  public static void redirectOutput(Path file) {
    NativePath path = NativePath.of(file.toString());
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0) {
      throw new FileException("open", path, -fd);
    }
    for (int standard = 1; standard <= 2; standard++) {
      if (dup2(fd, standard) < 0) {
        throw new FileException("dup2", path, Native.getLastError());
      }
    }
    var _ = closeFile(fd);
  }

  /** Closes a descriptor: 0, or the error number, negated. */
  public static int closeFile(int fd) {
    return (int) orError(close(fd));
  }

  /** Reads: how many bytes, or the error number, negated. */
  static long preadv(int fd, IoVector vector, long offset) {
    try {
      return orError(preadv(fd, vector.address(), vector.size(), offset));
    } finally {
      Reference.reachabilityFence(vector);
    }
  }

  /** Writes: how many bytes, or the error number, negated. */
  static long pwritev(int fd, IoVector vector, long offset) {
    try {
      return orError(pwritev(fd, vector.address(), vector.size(), offset));
    } finally {
      Reference.reachabilityFence(vector);
    }
  }

  /** Asks where a file ends, in bytes: or the error number, negated. */
  static long seekEnd(int fd) {
    return orError(lseek(fd, 0, SEEK_END));
  }

  /** Asks about a path, not following a symbolic link. */
  static int statx(NativePath path, int mask, FileStat into) {
    return statx(AT_FDCWD, path.buffer, AT_SYMLINK_NOFOLLOW, mask, into.statx);
  }

  /** Asks about an open file. */
  static int statx(int fd, int mask, FileStat into) {
    return statx(fd, EMPTY_PATH.buffer, AT_EMPTY_PATH, mask, into.statx);
  }

  /** Sets the times of a file, not following a symbolic link; {@code times} are two timespecs. */
  static int setTimes(NativePath path, NativeBuffer times) {
    return utimensat(AT_FDCWD, path.buffer, times, AT_SYMLINK_NOFOLLOW);
  }

  /** How many files this process may have open: its soft limit now. */
  public static int openFileLimit() {
    NativeBuffer limit = new NativeBuffer(RLIMIT_BYTES);
    if (getrlimit(RLIMIT_NOFILE, limit) < 0) {
      return USUAL_OPEN_FILES;
    }
    long files = limit.bytes.get(ValueLayout.JAVA_LONG, 0);
    // RLIM_INFINITY is the largest unsigned number.
    return files < 0 ? Integer.MAX_VALUE : (int) Math.min(files, Integer.MAX_VALUE);
  }

  /** Moves the calling thread to the cores whose bits are set. */
  public static int setAffinity(MemorySegment mask) {
    try {
      return sched_setaffinity(0, mask.byteSize(), mask.address());
    } finally {
      Reference.reachabilityFence(mask);
    }
  }

  /** Asks what the calling thread has used; {@code result} holds a struct rusage. */
  public static int threadUsage(MemorySegment result) {
    try {
      return getrusage(RUSAGE_THREAD, result.address());
    } finally {
      Reference.reachabilityFence(result);
    }
  }

  /** Maps zeros that take memory when they are written; -1 when that is refused. */
  public static long mapZeros(long bytes) {
    return mapAnonymous(bytes, MAP_NORESERVE);
  }

  /** Maps zeros; -1 when that is refused. */
  public static long mapMemory(long bytes) {
    return mapAnonymous(bytes, 0);
  }

  /** Maps zeros on reserved huge pages of 2 MiB; -1 when there are not enough. */
  public static long mapHugePages(long bytes) {
    return mapAnonymous(bytes, MAP_HUGETLB | MAP_HUGE_2MB);
  }

  private static long mapAnonymous(long bytes, int flags) {
    return mmap(0, bytes, PROT_READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  }

  /** Maps what a descriptor stands for, shared and with its pages in place; -1 when that is refused. */
  public static long mapShared(int fd, long bytes, long offset) {
    return mmap(0, bytes, PROT_READ_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
  }

  /** Makes memory that has a descriptor but no name, of so many bytes: the descriptor, or -1. */
  public static int makeMemory(String shownAs, long bytes) {
    int fd = memfd_create(shownAs, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, bytes) < 0) {
      var _ = close(fd);
      return -1;
    }
    return fd;
  }

  /** Maps what a descriptor stands for, shared, whose pages come as they are touched; -1 when that is refused. */
  public static long mapLazily(int fd, long bytes) {
    return mmap(0, bytes, PROT_READ_WRITE, MAP_SHARED, fd, 0);
  }

  /** Asks for transparent huge pages; -1 when the kernel has none. */
  public static int adviseHugePages(long address, long bytes) {
    return madvise(address, bytes, MADV_HUGEPAGE);
  }

  /** Has whole pages read as zeros, and take no room until they are touched again; -1 when that is refused. */
  public static int giveBack(long address, long bytes) {
    return madvise(address, bytes, MADV_DONTNEED);
  }

  /** The same of shared memory, for all who map it; -1 when that is refused. */
  public static int giveBackShared(long address, long bytes) {
    return madvise(address, bytes, MADV_REMOVE);
  }

  /** Gives writable memory its pages; -1 when that is refused. */
  public static int populate(long address, long bytes) {
    return madvise(address, bytes, MADV_POPULATE_WRITE);
  }

  public static native int munmap(long address, long bytes);

  /** Gives a file real memory, or room on its device; returns 0 or an error number. */
  public static native int posix_fallocate(int fd, long offset, long bytes);

  /** What an error number means, in words. */
  static native String strerror(int errno);

  private static native int memfd_create(String name, int flags);

  static native int fcntl(int fd, int command, int argument);

  static native int fallocate(int fd, int mode, long offset, long bytes);

  static native int ftruncate(int fd, long size);

  static native int fdatasync(int fd);

  static native int fsync(int fd);

  static native int dup2(int from, int to);

  static native int flock(int fd, int operation);

  static native int rename(Pointer from, Pointer to);

  static native int unlink(Pointer path);

  static native int mkdir(Pointer path, int mode);

  private static native int open(Pointer path, int flags, int mode);

  private static native int close(int fd);

  private static native long lseek(int fd, long offset, int whence);

  private static native long preadv(int fd, long iovec, int count, long offset);

  private static native long pwritev(int fd, long iovec, int count, long offset);

  private static native int statx(int dirFd, Pointer path, int flags, int mask, Pointer buffer);

  private static native int utimensat(int dirFd, Pointer path, Pointer times, int flags);

  private static native int getrlimit(int resource, Pointer limit);

  private static native int getrusage(int who, long usage);

  private static native int sched_setaffinity(int thread, long bytes, long mask);

  private static native long mmap(
      long address, long bytes, int protection, int flags, int fd, long offset);

  private static native int madvise(long address, long bytes, int advice);
}
