package ucm.platform.io;

import com.sun.jna.Native;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * System calls of Linux that the C library has no function for, by their numbers on x86-64 and ARM64.
 * As in {@code Libc}, -1 means that {@link Native#getLastError()} says why.
 */
final class Syscalls {

  private static final boolean IS_ARM = "aarch64".equals(System.getProperty("os.arch"));
  private static final long IO_SETUP = IS_ARM ? 0 : 206;
  private static final long IO_DESTROY = IS_ARM ? 1 : 207;
  private static final long IO_GETEVENTS = IS_ARM ? 4 : 208;
  private static final long IO_SUBMIT = IS_ARM ? 2 : 209;
  private static final long IO_URING_SETUP = 425;
  private static final long IO_URING_ENTER = 426;

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

  /** Sets a context up; {@code context} is 8 zero bytes and gets its handle. */
  static long ioSetup(int depth, MemorySegment context) {
    try {
      return syscall(IO_SETUP, depth, context.address(), 0, 0, 0);
    } finally {
      Reference.reachabilityFence(context);
    }
  }

  /**
   * Hands requests to the kernel.
   *
   * @param pointers to each of them
   * @param iocbs what is pointed to
   */
  static long ioSubmit(long context, int count, MemorySegment pointers, MemorySegment iocbs) {
    try {
      return syscall(IO_SUBMIT, context, count, pointers.address(), 0, 0);
    } finally {
      Reference.reachabilityFence(pointers);
      Reference.reachabilityFence(iocbs);
    }
  }

  /** Waits for requests to end, for as long as it takes. */
  static long ioGetEvents(long context, int least, int most, MemorySegment events) {
    try {
      return syscall(IO_GETEVENTS, context, least, most, events.address(), 0);
    } finally {
      Reference.reachabilityFence(events);
    }
  }

  static long ioDestroy(long context) {
    return syscall(IO_DESTROY, context, 0, 0, 0, 0);
  }

  /** Sets a ring up; {@code params} is zero bytes and receives the layout of the ring. Returns a descriptor. */
  static int uringSetup(int depth, MemorySegment params) {
    try {
      return (int) syscall(IO_URING_SETUP, depth, params.address(), 0, 0, 0);
    } finally {
      Reference.reachabilityFence(params);
    }
  }

  /** Hands requests to the kernel and waits for results. */
  static int uringEnter(int ring, int toSubmit, int least, int flags) {
    return (int) syscall(IO_URING_ENTER, ring, toSubmit, least, flags, 0);
  }

  /**
   * Maps memory that is shared with the kernel, to be given back by {@link #unmap}.
   *
   * @throws FileException when that fails
   */
  @SuppressWarnings("restricted")
  static MemorySegment mapShared(int fd, long bytes, long offset) {
    long address = Libc.mapShared(fd, bytes, offset);
    if (address == -1) {
      throw new FileException("mmap", "a ring of io_uring", Native.getLastError());
    }
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /** Gives back what was mapped; it must not be used any more. */
  static void unmap(MemorySegment mapped) {
    Libc.munmap(mapped.address(), mapped.byteSize());
  }

  private static native long syscall(long number, long a, long b, long c, long d, long e);
}
