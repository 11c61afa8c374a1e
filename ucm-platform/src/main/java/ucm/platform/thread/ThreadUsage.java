package ucm.platform.thread;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * What the calling thread has used of its processor, by {@code getrusage}. One object for each thread.
 *
 * <p>The times it waited tell a thread that is held by a device from one that others push off its
 * processor: only the first gives the processor up by itself.
 */
class ThreadUsage {

  private static final long NANOS_OF_SECOND = 1_000_000_000L;
  private static final long NANOS_OF_MICRO = 1_000L;

  private final MemorySegment usage = Arena.ofAuto().allocate(Libc.RUSAGE_BYTES, Long.BYTES);

  private long processorNanos;
  private long waits;

  /** Reads it; the other methods tell what was found. */
  void read() {
    if (Libc.threadUsage(usage) < 0) {
      throw new FileException("getrusage", "this thread", Native.getLastError());
    }
    processorNanos = nanosAt(Libc.RUSAGE_USER_AT) + nanosAt(Libc.RUSAGE_SYSTEM_AT);
    waits = usage.get(ValueLayout.JAVA_LONG, Libc.RUSAGE_WAITS_AT);
  }

  private long nanosAt(int at) {
    return usage.get(ValueLayout.JAVA_LONG, at) * NANOS_OF_SECOND
        + usage.get(ValueLayout.JAVA_LONG, at + Long.BYTES) * NANOS_OF_MICRO;
  }

  /** Time on a processor since the thread was started. */
  long processorNanos() {
    return processorNanos;
  }

  /** How often it gave its processor up to wait for something. */
  long waits() {
    return waits;
  }
}
