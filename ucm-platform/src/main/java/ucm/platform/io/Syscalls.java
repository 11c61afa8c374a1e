package ucm.platform.io;

import com.sun.jna.Native;

/**
 * System calls of Linux that the C library has no function for, by their numbers on x86-64 and ARM64.
 * As in {@code Libc}, -1 means that {@link Native#getLastError()} says why. Who calls keeps what an address
 * points to in a field of its own that it uses after the call.
 */
final class Syscalls {

  private static final boolean IS_ARM = "aarch64".equals(System.getProperty("os.arch"));

  static final long IO_SETUP = IS_ARM ? 0 : 206;
  static final long IO_DESTROY = IS_ARM ? 1 : 207;
  static final long IO_GETEVENTS = IS_ARM ? 4 : 208;
  static final long IO_SUBMIT = IS_ARM ? 2 : 209;

  static {
    String processor = System.getProperty("os.arch");
    if (!IS_ARM && !"amd64".equals(processor)) {
      throw new ExceptionInInitializerError(
          "asynchronous I/O is known for amd64 and aarch64; found "
              + processor
              + ": set the io_engine of the store to psync");
    }
    Native.register(Syscalls.class, "c");
  }

  private Syscalls() {}

  static native long syscall(long number, long a, long b, long c, long d, long e);
}
