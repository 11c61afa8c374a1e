package ucm.platform.memory;

import com.sun.jna.Native;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;

/**
 * The C library, as far as memory shared by processes needs it. As in {@code Libc}, -1 means that
 * {@link Native#getLastError()} says why.
 */
final class SharedMemoryCalls {

  /** {@code fcntl}: who holds a lock of an open file description. */
  static final int F_OFD_GETLK = 36;

  /** {@code fcntl}: take or give back a lock of an open file description, without waiting. */
  static final int F_OFD_SETLK = 37;

  /** Type of lock: for one holder. */
  static final short F_WRLCK = 1;

  /** Type of lock: none. */
  static final short F_UNLCK = 2;

  /** Bytes of {@code struct flock}; what is not named here is zero. */
  static final int FLOCK_BYTES = 32;

  /** Offset of {@code short l_type}. */
  static final int FLOCK_TYPE_AT = 0;

  /** Offset of {@code off_t l_start}. */
  static final int FLOCK_START_AT = 8;

  /** Offset of {@code off_t l_len}. */
  static final int FLOCK_LENGTH_AT = 16;

  private static final long SYS_FUTEX = "aarch64".equals(System.getProperty("os.arch")) ? 98 : 202;
  // Without FUTEX_PRIVATE_FLAG: the waiter and the waker are different processes.
  private static final int FUTEX_WAIT = 0;
  private static final int FUTEX_WAKE = 1;

  static {
    Native.register(SharedMemoryCalls.class, "c");
  }

  private SharedMemoryCalls() {}

  static int lock(int fd, int command, MemorySegment flock) {
    try {
      return fcntl(fd, command, flock.address());
    } finally {
      Reference.reachabilityFence(flock);
    }
  }

  /** Gives a file real memory; returns an error number, or 0. */
  static int allocate(int fd, long bytes) {
    return posix_fallocate(fd, 0, bytes);
  }

  /** Sleeps while a word has a value. */
  static long futexWait(MemorySegment word, int value, MemorySegment timeout) {
    try {
      return syscall(SYS_FUTEX, word.address(), FUTEX_WAIT, value, timeout.address(), 0);
    } finally {
      Reference.reachabilityFence(word);
      Reference.reachabilityFence(timeout);
    }
  }

  static long futexWake(MemorySegment word, int threads) {
    try {
      return syscall(SYS_FUTEX, word.address(), FUTEX_WAKE, threads, 0, 0);
    } finally {
      Reference.reachabilityFence(word);
    }
  }

  private static native int fcntl(int fd, int command, long argument);

  private static native int posix_fallocate(int fd, long offset, long bytes);

  private static native long syscall(long number, long a, long b, long c, long d, long e);
}
