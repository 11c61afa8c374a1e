package ucm.platform.io;

import static ucm.platform.io.Syscalls.IO_DESTROY;
import static ucm.platform.io.Syscalls.IO_GETEVENTS;
import static ucm.platform.io.Syscalls.IO_SETUP;
import static ucm.platform.io.Syscalls.IO_SUBMIT;
import static ucm.platform.io.Syscalls.syscall;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.IoVector;

/**
 * Native asynchronous I/O of Linux: {@code io_submit} and {@code io_getevents}. It is asynchronous for
 * files that are open with O_DIRECT; for others the kernel does the work in {@code io_submit}.
 *
 * <p>Structures and numbers are those of {@code linux/aio_abi.h} on 64 bits, little-endian.
 */
public final class AioQueue implements KernelQueue {

  // struct iocb, 64 bytes.
  private static final int IOCB_BYTES = 64;
  private static final int DATA_AT = 0;
  private static final int OPCODE_AT = 16;
  private static final int FD_AT = 20;
  private static final int BUFFER_AT = 24;
  private static final int COUNT_AT = 32;
  private static final int OFFSET_AT = 40;
  private static final short PREADV = 7;
  private static final short PWRITEV = 8;

  // struct io_event, 32 bytes; its first field is that of the iocb.
  private static final int EVENT_BYTES = 32;
  private static final int RESULT_AT = 16;

  private final int depth;
  private final MemorySegment iocbs;
  private final MemorySegment pointers;
  private final MemorySegment events;
  private final int[] gathered;
  private int gatheredCount;
  private final int[] refused;
  private final int[] refusals;
  private int refusedCount;
  private int underWay;
  private final long context;

  /**
   * Sets a queue up.
   *
   * @param depth how many requests it takes; counts against {@code fs.aio-max-nr} of the machine
   * @throws FileException with EAGAIN when that is used up
   */
  public AioQueue(int depth) {
    this.depth = depth;
    Arena arena = Arena.ofAuto();
    MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
    if (syscall(IO_SETUP, depth, result.address(), 0, 0, 0) < 0) {
      throw new FileException("io_setup", "a queue of " + depth, Native.getLastError());
    }
    context = result.get(ValueLayout.JAVA_LONG, 0);
    iocbs = arena.allocate((long) depth * IOCB_BYTES, Long.BYTES);
    pointers = arena.allocate((long) depth * Long.BYTES, Long.BYTES);
    events = arena.allocate((long) depth * EVENT_BYTES, Long.BYTES);
    gathered = new int[depth];
    refused = new int[depth];
    refusals = new int[depth];
  }

  @Override
  public void gather(int slot, boolean isWrite, int fd, IoVector vector, long offset) {
    long at = (long) slot * IOCB_BYTES;
    iocbs.asSlice(at, IOCB_BYTES).fill((byte) 0);
    iocbs.set(ValueLayout.JAVA_LONG, at + DATA_AT, slot);
    iocbs.set(ValueLayout.JAVA_SHORT, at + OPCODE_AT, isWrite ? PWRITEV : PREADV);
    iocbs.set(ValueLayout.JAVA_INT, at + FD_AT, fd);
    iocbs.set(ValueLayout.JAVA_LONG, at + BUFFER_AT, vector.address());
    iocbs.set(ValueLayout.JAVA_LONG, at + COUNT_AT, vector.size());
    iocbs.set(ValueLayout.JAVA_LONG, at + OFFSET_AT, offset);
    gathered[gatheredCount++] = slot;
  }

  @Override
  public void submit() {
    for (int i = 0; i < gatheredCount; i++) {
      long iocb = iocbs.address() + (long) gathered[i] * IOCB_BYTES;
      pointers.set(ValueLayout.JAVA_LONG, (long) i * Long.BYTES, iocb);
    }
    int done = 0;
    while (done < gatheredCount) {
      long rest = pointers.address() + (long) done * Long.BYTES;
      long taken = syscall(IO_SUBMIT, context, gatheredCount - done, rest, 0, 0);
      if (taken > 0) {
        underWay += (int) taken;
        done += (int) taken;
        continue;
      }
      int errno = taken == 0 ? Errno.EAGAIN : Native.getLastError();
      if (errno == Errno.EAGAIN && underWay > 0) {
        // The kernel has no room now; there is some when one of ours has ended.
        break;
      }
      // What is wrong is wrong with the first of them.
      refused[refusedCount] = gathered[done++];
      refusals[refusedCount++] = errno;
    }
    System.arraycopy(gathered, done, gathered, 0, gatheredCount - done);
    gatheredCount -= done;
  }

  @Override
  public void await(Listener listener) {
    if (refusedCount > 0) {
      while (refusedCount > 0) {
        refusedCount--;
        listener.ended(refused[refusedCount], -refusals[refusedCount]);
      }
      return;
    }
    long count = syscall(IO_GETEVENTS, context, 1, depth, events.address(), 0);
    if (count < 0) {
      int errno = Native.getLastError();
      if (errno == Errno.EINTR) {
        return;
      }
      throw new FileException("io_getevents", "a queue of " + depth, errno);
    }
    for (int i = 0; i < count; i++) {
      long at = (long) i * EVENT_BYTES;
      underWay--;
      listener.ended(
          (int) events.get(ValueLayout.JAVA_LONG, at + DATA_AT),
          events.get(ValueLayout.JAVA_LONG, at + RESULT_AT));
    }
  }

  @Override
  public void close() {
    var _ = syscall(IO_DESTROY, context, 0, 0, 0, 0);
  }
}
