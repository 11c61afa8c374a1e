package ucm.platform.io;

import static ucm.platform.io.Syscalls.IO_URING_ENTER;
import static ucm.platform.io.Syscalls.IO_URING_SETUP;
import static ucm.platform.io.Syscalls.syscall;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.Libc;

/**
 * A ring of {@code io_uring}: requests and results in memory that this process shares with the kernel.
 *
 * <p>Structures and numbers are those of {@code linux/io_uring.h}, little-endian; needs Linux 5.4.
 */
public final class UringQueue implements KernelQueue {

  // struct io_uring_params; offsets into the rings are those of its sq_off and cq_off.
  private static final int PARAMS_BYTES = 120;
  private static final int SQ_ENTRIES_AT = 0;
  private static final int CQ_ENTRIES_AT = 4;
  private static final int FEATURES_AT = 20;
  private static final int SQ_TAIL_AT = 44;
  private static final int SQ_MASK_AT = 48;
  private static final int SQ_ARRAY_AT = 64;
  private static final int CQ_HEAD_AT = 80;
  private static final int CQ_TAIL_AT = 84;
  private static final int CQ_MASK_AT = 88;
  private static final int CQ_CQES_AT = 100;
  private static final int FEATURE_SINGLE_MMAP = 1;
  private static final long SQES_OFFSET = 0x10000000;
  private static final int ENTER_GETEVENTS = 1;

  // struct io_uring_sqe, 64 bytes.
  private static final int SQE_BYTES = 64;
  private static final int FD_AT = 4;
  private static final int OFFSET_AT = 8;
  private static final int ADDRESS_AT = 16;
  private static final int LENGTH_AT = 24;
  private static final int USER_DATA_AT = 32;
  private static final byte READV = 1;
  private static final byte WRITEV = 2;

  // struct io_uring_cqe, 16 bytes; its first field is the user data.
  private static final int CQE_BYTES = 16;
  private static final int RESULT_AT = 8;

  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

  private final int ring;
  private final MemorySegment rings;
  private final MemorySegment sqes;
  private final int sqTail;
  private final int sqMask;
  private final int sqArray;
  private final int cqHead;
  private final int cqTail;
  private final int cqMask;
  private final int cqes;
  // Handed over in this order and not taken by the kernel yet.
  private final int[] gathered;
  private int gatheredCount;
  private int refusal;
  private int underWay;

  /**
   * Sets a ring up.
   *
   * @param depth how many requests it takes
   * @throws FileException with ENOSYS or EPERM where the kernel has none or does not allow it
   */
  public UringQueue(int depth) {
    MemorySegment params = Arena.ofAuto().allocate(PARAMS_BYTES, Long.BYTES);
    ring = (int) syscall(IO_URING_SETUP, depth, params.address(), 0, 0, 0);
    if (ring < 0) {
      throw new FileException("io_uring_setup", "a queue of " + depth, Native.getLastError());
    }
    int sqEntries = number(params, SQ_ENTRIES_AT);
    sqTail = number(params, SQ_TAIL_AT);
    sqArray = number(params, SQ_ARRAY_AT);
    cqHead = number(params, CQ_HEAD_AT);
    cqTail = number(params, CQ_TAIL_AT);
    cqes = number(params, CQ_CQES_AT);
    if ((number(params, FEATURES_AT) & FEATURE_SINGLE_MMAP) == 0) {
      Libc.closeFile(ring);
      throw new FileException("io_uring_setup", "one ring for both ways", Errno.ENOSYS);
    }
    long sqBytes = sqArray + (long) sqEntries * Integer.BYTES;
    long cqBytes = cqes + (long) number(params, CQ_ENTRIES_AT) * CQE_BYTES;
    rings = map(Math.max(sqBytes, cqBytes), 0, MemorySegment.NULL);
    sqes = map((long) sqEntries * SQE_BYTES, SQES_OFFSET, rings);
    sqMask = number(rings, number(params, SQ_MASK_AT));
    cqMask = number(rings, number(params, CQ_MASK_AT));
    gathered = new int[depth];
  }

  /** Maps a part of the ring; when that fails, gives back all there is. */
  @SuppressWarnings("restricted") // The address and the size are those of the mapping.
  private MemorySegment map(long bytes, long offset, MemorySegment mapped) {
    long address = Libc.mapShared(ring, bytes, offset);
    if (address != -1) {
      return MemorySegment.ofAddress(address).reinterpret(bytes);
    }
    int errno = Native.getLastError();
    if (mapped.byteSize() > 0) {
      Libc.munmap(mapped.address(), mapped.byteSize());
    }
    Libc.closeFile(ring);
    throw new FileException("mmap", "a ring of io_uring", errno);
  }

  private static int number(MemorySegment from, int at) {
    return from.get(ValueLayout.JAVA_INT, at);
  }

  @Override
  public void gather(int slot, boolean isWrite, int fd, IoVector vector, long offset) {
    long at = (long) slot * SQE_BYTES;
    sqes.asSlice(at, SQE_BYTES).fill((byte) 0);
    sqes.set(ValueLayout.JAVA_BYTE, at, isWrite ? WRITEV : READV);
    sqes.set(ValueLayout.JAVA_INT, at + FD_AT, fd);
    sqes.set(ValueLayout.JAVA_LONG, at + OFFSET_AT, offset);
    sqes.set(ValueLayout.JAVA_LONG, at + ADDRESS_AT, vector.address());
    sqes.set(ValueLayout.JAVA_INT, at + LENGTH_AT, vector.size());
    sqes.set(ValueLayout.JAVA_LONG, at + USER_DATA_AT, slot);
    int tail = number(rings, sqTail);
    rings.set(ValueLayout.JAVA_INT, sqArray + (long) (tail & sqMask) * Integer.BYTES, slot);
    // The kernel reads the tail first: what lies before it must be there by then.
    INT.setRelease(rings, (long) sqTail, tail + 1);
    gathered[gatheredCount++] = slot;
  }

  @Override
  public void submit() {
    while (gatheredCount > 0) {
      int taken = (int) syscall(IO_URING_ENTER, ring, gatheredCount, 0, 0, 0);
      if (taken > 0) {
        underWay += taken;
        System.arraycopy(gathered, taken, gathered, 0, gatheredCount - taken);
        gatheredCount -= taken;
        continue;
      }
      int errno = taken == 0 ? Errno.EAGAIN : Native.getLastError();
      if (errno == Errno.EINTR) {
        continue;
      }
      if (underWay == 0) {
        refusal = errno;
      }
      // Else there is room when one of ours has ended.
      return;
    }
  }

  @Override
  public void await(Listener listener) {
    if (refusal != 0) {
      refuse(listener);
      return;
    }
    int head = number(rings, cqHead);
    int tail = (int) INT.getAcquire(rings, (long) cqTail);
    if (head == tail) {
      if (syscall(IO_URING_ENTER, ring, 0, 1, ENTER_GETEVENTS, 0) < 0
          && Native.getLastError() != Errno.EINTR) {
        throw new FileException("io_uring_enter", "a wait for results", Native.getLastError());
      }
      tail = (int) INT.getAcquire(rings, (long) cqTail);
    }
    while (head != tail) {
      long at = cqes + (long) (head & cqMask) * CQE_BYTES;
      int slot = (int) rings.get(ValueLayout.JAVA_LONG, at);
      int result = rings.get(ValueLayout.JAVA_INT, at + RESULT_AT);
      head++;
      INT.setRelease(rings, (long) cqHead, head);
      underWay--;
      listener.ended(slot, result);
    }
  }

  /** Takes back what the kernel does not take, which has not read it. */
  private void refuse(Listener listener) {
    int errno = refusal;
    refusal = 0;
    INT.setRelease(rings, (long) sqTail, number(rings, sqTail) - gatheredCount);
    while (gatheredCount > 0) {
      gatheredCount--;
      listener.ended(gathered[gatheredCount], -errno);
    }
  }

  @Override
  public void close() {
    Libc.munmap(sqes.address(), sqes.byteSize());
    Libc.munmap(rings.address(), rings.byteSize());
    Libc.closeFile(ring);
  }
}
