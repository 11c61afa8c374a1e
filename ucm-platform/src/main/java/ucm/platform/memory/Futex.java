package ucm.platform.memory;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;

/**
 * Sleeping on a word of memory that several processes share, and waking the sleepers (futex(2)).
 *
 * <p>The thread that changes the word wakes afterwards; a sleeper names the value it has seen, and does not
 * fall asleep when the word has another one by then. So no wake-up is lost.
 */
public final class Futex {

  private static final ThreadLocal<MemorySegment> TIMEOUT =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES));

  private Futex() {}

  /**
   * Sleeps until it is woken, the time has passed, or for no reason; not at all when the word has
   * another value. Does not react to an interrupt.
   *
   * @param memory shared by the processes
   * @param offset of the word, a multiple of 4
   * @param seen the value it had
   * @param nanos how long at the most, 0 or more
   */
  public static void sleep(MemorySegment memory, long offset, int seen, long nanos) {
    long second = TimeUnit.SECONDS.toNanos(1);
    MemorySegment timeout = TIMEOUT.get();
    timeout.setAtIndex(ValueLayout.JAVA_LONG, 0, nanos / second);
    timeout.setAtIndex(ValueLayout.JAVA_LONG, 1, nanos % second);
    if (SharedMemoryCalls.futexWait(word(memory, offset), seen, timeout) < 0) {
      int errno = Native.getLastError();
      if (errno != Errno.EAGAIN && errno != Errno.EINTR && errno != Errno.ETIMEDOUT) {
        throw new FileException("futex wait", memory, errno);
      }
    }
  }

  /**
   * Wakes the threads that sleep on a word.
   *
   * @param threads how many of them at the most
   */
  public static void wake(MemorySegment memory, long offset, int threads) {
    if (SharedMemoryCalls.futexWake(word(memory, offset), threads) < 0) {
      throw new FileException("futex wake", memory, Native.getLastError());
    }
  }

  private static MemorySegment word(MemorySegment memory, long offset) {
    return memory.asSlice(offset, Integer.BYTES, Integer.BYTES);
  }
}
