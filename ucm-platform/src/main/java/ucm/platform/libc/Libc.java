package ucm.platform.libc;

import com.sun.jna.Native;
import com.sun.jna.Platform;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

/**
 * The C library, as far as stores need it: JNA direct mapping, constants of Linux on 64 bits.
 *
 * <p>Pointers are {@code long} in the private functions and nowhere else; what they point to is kept
 * alive during the call. A function that returns -1 has left its error
 * number in {@link Native#getLastError()}, which JNA keeps per thread from the return of the call on;
 * reading it costs nothing on the path of success, unlike a method that throws. Those that are called for
 * every file return their error number, negated.
 */
public final class Libc {

  /** Open for reading. */
  static final int O_RDONLY = 0;

  /** Open for reading and writing. */
  static final int O_RDWR = 2;

  /** Create the file. */
  static final int O_CREAT = 0x40;

  /** With {@link #O_CREAT}: fail when it is there. */
  static final int O_EXCL = 0x80;

  /** Do not wait for the other end of a pipe that lies in place of a file. */
  static final int O_NONBLOCK = 0x800;

  /** Close on exec, so that a child process does not inherit the file. */
  static final int O_CLOEXEC = 0x80000;

  /** Fail when it is no directory. */
  static final int O_DIRECTORY = isArm() ? 0x4000 : 0x10000;

  /** Fail with ELOOP when it is a symbolic link. */
  static final int O_NOFOLLOW = isArm() ? 0x8000 : 0x20000;

  /** Read and write past the page cache. */
  static final int O_DIRECT = isArm() ? 0x10000 : 0x4000;

  /** Reading leaves the access time alone; allowed to the owner of a file. */
  static final int O_NOATIME = 0x40000;

  /** {@code fcntl}: set the flags of an open file. */
  static final int F_SETFL = 4;

  /** Names are relative to the working directory of the process. */
  private static final int AT_FDCWD = -100;

  /** Ask about a symbolic link itself. */
  private static final int AT_SYMLINK_NOFOLLOW = 0x100;

  /** Ask about the descriptor itself, with an empty path. */
  private static final int AT_EMPTY_PATH = 0x1000;

  private static final NativePath EMPTY_PATH = NativePath.of("");

  /** {@code utimensat}: leave this one of the two times alone. */
  static final long UTIME_OMIT = 0x3ffffffe;

  /** Bytes of the two {@code struct timespec} of {@code utimensat}. */
  static final int TIMES_BYTES = 32;

  /** Lock for one owner. */
  static final int LOCK_EX = 2;

  /** Do not wait for the lock. */
  static final int LOCK_NB = 4;

  /** {@code getrlimit}: how many files may be open. */
  static final int RLIMIT_NOFILE = 7;

  /** Bytes of {@code struct rlimit}, the soft limit first. */
  static final int RLIMIT_BYTES = 16;

  /** {@code getrusage}: of the calling thread. */
  private static final int RUSAGE_THREAD = 1;

  /** Bytes of {@code struct rusage}. */
  public static final int RUSAGE_BYTES = 144;

  /** Offset of {@code struct timeval ru_utime} in {@code struct rusage}. */
  public static final int RUSAGE_USER_AT = 0;

  /** Offset of {@code struct timeval ru_stime} in {@code struct rusage}. */
  public static final int RUSAGE_SYSTEM_AT = 16;

  /** Offset of {@code long ru_nvcsw} in {@code struct rusage}. */
  public static final int RUSAGE_WAITS_AT = 128;

  /** Memory may be read. */
  private static final int PROT_READ = 1;

  /** Memory may be written. */
  private static final int PROT_WRITE = 2;

  /** Memory of this process alone. */
  private static final int MAP_PRIVATE = 0x2;

  /** Memory shared with others. */
  private static final int MAP_SHARED = 0x1;

  /** Fill the page tables at once. */
  private static final int MAP_POPULATE = 0x8000;

  /** Memory without a file. */
  private static final int MAP_ANONYMOUS = 0x20;

  /** Memory that counts when it is touched, not before. */
  private static final int MAP_NORESERVE = 0x4000;

  /** Memory on pages that the administrator reserved. */
  private static final int MAP_HUGETLB = 0x40000;

  /** With {@link #MAP_HUGETLB}: pages of 2 MiB, whatever the default size is. */
  private static final int MAP_HUGE_2MB = 21 << 26;

  /** {@code madvise}: use transparent huge pages. */
  private static final int MADV_HUGEPAGE = 14;

  /** Seek from the end. */
  private static final int SEEK_END = 2;

  static {
    if (!Platform.isLinux() || Native.POINTER_SIZE != Long.BYTES) {
      throw new ExceptionInInitializerError(
          "file stores need Linux on a 64-bit processor; found "
              + System.getProperty("os.name")
              + " on "
              + System.getProperty("os.arch"));
    }
    Native.register(Libc.class, "c");
  }

  private Libc() {}

  /** Opens a file: its descriptor, or the error number, negated. */
  static int open(NativePath path, int flags, int mode) {
    try {
      return (int) orError(open(path.address(), flags, mode));
    } finally {
      Reference.reachabilityFence(path);
    }
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

  static int rename(NativePath from, NativePath to) {
    try {
      return rename(from.address(), to.address());
    } finally {
      Reference.reachabilityFence(from);
      Reference.reachabilityFence(to);
    }
  }

  static int unlink(NativePath path) {
    try {
      return unlink(path.address());
    } finally {
      Reference.reachabilityFence(path);
    }
  }

  static int mkdir(NativePath path, int mode) {
    try {
      return mkdir(path.address(), mode);
    } finally {
      Reference.reachabilityFence(path);
    }
  }

  /** Asks about a path, not following a symbolic link; {@code result} holds a struct statx. */
  static int statx(NativePath path, int mask, MemorySegment result) {
    try {
      return statx(AT_FDCWD, path.address(), AT_SYMLINK_NOFOLLOW, mask, result.address());
    } finally {
      Reference.reachabilityFence(path);
      Reference.reachabilityFence(result);
    }
  }

  /** Sets the times of a file, not following a symbolic link; {@code times} are two timespecs. */
  static int setTimes(NativePath path, MemorySegment times) {
    try {
      return utimensat(AT_FDCWD, path.address(), times.address(), AT_SYMLINK_NOFOLLOW);
    } finally {
      Reference.reachabilityFence(path);
      Reference.reachabilityFence(times);
    }
  }

  /** Asks about an open file; {@code result} holds a struct statx. */
  static int statx(int fd, int mask, MemorySegment result) {
    try {
      return statx(fd, EMPTY_PATH.address(), AT_EMPTY_PATH, mask, result.address());
    } finally {
      Reference.reachabilityFence(result);
    }
  }

  /** Asks for a limit of the process; {@code result} holds a struct rlimit. */
  static int limit(int resource, MemorySegment result) {
    try {
      return getrlimit(resource, result.address());
    } finally {
      Reference.reachabilityFence(result);
    }
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
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return mmap(0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  }

  /** Maps zeros; -1 when that is refused. */
  public static long mapMemory(long bytes) {
    return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }

  /** Maps zeros on reserved huge pages of 2 MiB; -1 when there are not enough. */
  public static long mapHugePages(long bytes) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB;
    return mmap(0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  }

  /** Maps what a descriptor stands for, shared and with its pages in place; -1 when that is refused. */
  public static long mapShared(int fd, long bytes, long offset) {
    return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
  }

  /** Asks for transparent huge pages; -1 when the kernel has none. */
  public static int adviseHugePages(long address, long bytes) {
    return madvise(address, bytes, MADV_HUGEPAGE);
  }

  public static native int munmap(long address, long bytes);

  /** Closes a descriptor: 0, or the error number, negated. */
  public static int closeFile(int fd) {
    return (int) orError(close(fd));
  }

  private static long orError(long result) {
    return result < 0 ? -Native.getLastError() : result;
  }

  private static native int close(int fd);

  /** Asks where a file ends, in bytes: or the error number, negated. */
  static long seekEnd(int fd) {
    return orError(lseek(fd, 0, SEEK_END));
  }

  private static native long lseek(int fd, long offset, int whence);

  static native int fcntl(int fd, int command, int argument);

  /** Sets room aside from the start of a file, and lets it have that size. */
  static int fallocate(int fd, long size) {
    return fallocate(fd, 0, 0, size);
  }

  static native int ftruncate(int fd, long size);

  static native int fdatasync(int fd);

  static native int fsync(int fd);

  static native int flock(int fd, int operation);

  private static native long mmap(
      long address, long bytes, int protection, int flags, int fd, long offset);

  private static native int madvise(long address, long bytes, int advice);

  private static native int open(long path, int flags, int mode);

  private static native long preadv(int fd, long iovec, int count, long offset);

  private static native long pwritev(int fd, long iovec, int count, long offset);

  private static native int fallocate(int fd, int mode, long offset, long bytes);

  private static native int rename(long from, long to);

  private static native int unlink(long path);

  private static native int mkdir(long path, int mode);

  private static native int statx(int dirFd, long path, int flags, int mask, long buffer);

  private static native int utimensat(int dirFd, long path, long times, int flags);

  private static native int getrlimit(int resource, long limit);

  private static native int getrusage(int who, long usage);

  private static native int sched_setaffinity(int thread, long bytes, long mask);

  private static native String strerror(int errno);

  /** What an error number means, in words. */
  static String text(int errno) {
    return strerror(errno);
  }

  private static boolean isArm() {
    return "aarch64".equals(System.getProperty("os.arch"));
  }
}
