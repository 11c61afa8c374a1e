package ucm.store.ds3fs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;

/**
 * A ring of USRBIO (an <em>ior</em>), of requests that read or of requests that write. For one thread,
 * except {@link #close}. Hot path: allocates nothing.
 *
 * <p>A request may be carried out as soon as it is prepared. It certainly is once it is submitted,
 * unless the ring issues batches of exactly so many ({@code ior_depth} above 0): the thread that waits fills up
 * such a batch with requests for the first page of the last one, the same bytes to and from the same
 * memory, which changes nothing.
 */
final class Ring implements AutoCloseable {

  private static final long REPETITION = 1L << 62;
  private static final long REPEATED_BYTES = 4096;
  private static final long NANOS = 1_000_000_000L;
  private static final int MAX_RESULTS = 64;

  private final RingMover mover;
  private final String mountPoint;
  private final byte forRead;
  private final int entries;
  private final int batch;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment handle;
  private final MemorySegment cqes;
  private final MemorySegment until;

  // Entries that are taken.
  private int used;

  // How many requests of the last batch are prepared, when batches have a size.
  private int inBatch;
  private boolean isSubmitted = true;

  // The request prepared last.
  private MemorySegment lastMemory = MemorySegment.NULL;
  private long lastAddress;
  private int lastFd;
  private long lastOffset;
  private long lastLength;
  private long lastUserdata;

  /** Makes a ring that tells its mover of results; throws {@link FileException} when that is refused. */
  Ring(RingMover mover, String mountPoint, boolean isRead, RingSettings settings) {
    this.mover = mover;
    this.mountPoint = mountPoint;
    this.forRead = (byte) (isRead ? 1 : 0);
    this.entries = settings.entries();
    this.batch = Math.max(0, settings.depth());
    handle = arena.allocate(UsrbioLibrary.IOR_BYTES, Long.BYTES);
    cqes = arena.allocate((long) MAX_RESULTS * UsrbioLibrary.CQE_BYTES, Long.BYTES);
    until = arena.allocate(UsrbioLibrary.TIMESPEC_BYTES, Long.BYTES);
    int result =
        UsrbioLibrary.hf3fs_iorcreate4(
            handle.address(),
            arena.allocateFrom(mountPoint).address(),
            entries,
            forRead,
            settings.depth(),
            0,
            settings.numaId(),
            0);
    if (result != 0) {
      arena.close();
      throw new FileException("hf3fs_iorcreate4 for", mountPoint, Math.abs(result));
    }
  }

  /**
   * Prepares a request.
   *
   * @param memory the {@code struct hf3fs_iov} that holds the address
   * @param userdata 0 to 2^62 - 1
   * @return false when the ring is full: wait for some to end
   * @throws FileException when it is refused
   */
  boolean prepare(
      MemorySegment memory, long address, int fd, long offset, long length, long userdata) {
    if (!add(memory, address, fd, offset, length, userdata)) {
      return false;
    }
    lastMemory = memory;
    lastAddress = address;
    lastFd = fd;
    lastOffset = offset;
    lastLength = length;
    lastUserdata = userdata;
    return true;
  }

  private boolean add(
      MemorySegment memory, long address, int fd, long offset, long length, long userdata) {
    if (used == entries) {
      return false;
    }
    int result =
        UsrbioLibrary.hf3fs_prep_io(
            handle.address(), memory.address(), forRead, address, fd, offset, length, userdata);
    if (result == -Errno.EAGAIN && used > 0) {
      return false;
    }
    if (result < 0) {
      throw new FileException("hf3fs_prep_io on", mountPoint, -result);
    }
    used++;
    inBatch = batch == 0 ? 0 : (inBatch + 1) % batch;
    isSubmitted = false;
    return true;
  }

  /** Hands what is prepared to 3FS. */
  private void submit() {
    if (!isSubmitted) {
      int result = UsrbioLibrary.hf3fs_submit_ios(handle.address());
      if (result != 0) {
        throw new FileException("hf3fs_submit_ios on", mountPoint, Math.abs(result));
      }
      isSubmitted = true;
    }
  }

  /**
   * Submits, waits until a request has ended, and reports all that have.
   *
   * @param deadlineNanos by {@link System#nanoTime}
   * @return whether one has ended; false when the deadline has passed
   * @throws FileException when waiting fails
   */
  boolean await(long deadlineNanos) {
    fillBatch(deadlineNanos);
    submit();
    return reap(deadlineNanos);
  }

  /** Reports all requests that have ended, without waiting; whether there are no others. */
  boolean hasEnded() {
    try {
      boolean some = true;
      while (used > 0 && some) {
        some = reap(System.nanoTime());
      }
    } catch (FileException e) {
      return false;
    }
    return used == 0;
  }

  private void fillBatch(long deadlineNanos) {
    while (inBatch > 0) {
      // First, as the request may end any time from when it is prepared.
      mover.repeated(lastUserdata);
      long length = Math.min(lastLength, REPEATED_BYTES);
      boolean added = false;
      try {
        added = add(lastMemory, lastAddress, lastFd, lastOffset, length, lastUserdata | REPETITION);
      } finally {
        if (!added) {
          mover.ended(lastUserdata, 0, true);
        }
      }
      if (!added) {
        submit();
        if (!reap(deadlineNanos)) {
          return;
        }
      }
    }
  }

  private boolean reap(long deadlineNanos) {
    while (true) {
      long left = Math.max(0, deadlineNanos - System.nanoTime());
      setUntil(left);
      int count =
          UsrbioLibrary.hf3fs_wait_for_ios(
              handle.address(), cqes.address(), MAX_RESULTS, 1, until.address());
      if (count < 0 && count != -Errno.EINTR && count != -Errno.ETIMEDOUT) {
        throw new FileException("hf3fs_wait_for_ios on", mountPoint, -count);
      }
      if (count > 0) {
        used -= count;
        for (int i = 0; i < count; i++) {
          long at = (long) i * UsrbioLibrary.CQE_BYTES;
          long userdata = cqes.get(ValueLayout.JAVA_LONG, at + UsrbioLibrary.CQE_USERDATA_AT);
          long result = cqes.get(ValueLayout.JAVA_LONG, at + UsrbioLibrary.CQE_RESULT_AT);
          mover.ended(userdata & ~REPETITION, result, (userdata & REPETITION) != 0);
        }
        return true;
      }
      if (left == 0) {
        return false;
      }
    }
  }

  /** Writes down the time of day that comes so many nanoseconds from now. */
  private void setUntil(long nanos) {
    long millis = System.currentTimeMillis() + TimeUnit.NANOSECONDS.toMillis(nanos) + 1;
    until.set(ValueLayout.JAVA_LONG, 0, millis / 1000);
    until.set(
        ValueLayout.JAVA_LONG, Long.BYTES, TimeUnit.MILLISECONDS.toNanos(millis % 1000) % NANOS);
  }

  /** Gives it back; nothing is under way any more. */
  @Override
  public void close() {
    UsrbioLibrary.hf3fs_iordestroy(handle.address());
    arena.close();
  }
}
