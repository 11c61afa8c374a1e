package ucm.platform.thread;

import com.sun.jna.Native;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.platform.libc.FileException;
import ucm.platform.libc.Libc;

/**
 * Tells, by {@code getrusage}, whether the calling thread waits for a device for most of its time. A
 * thread that others pushed off its processor does not: it has not given it up by itself. One object for each
 * thread.
 */
final class WaitMeter {

  private static final long NANOS_OF_SECOND = 1_000_000_000L;
  private static final long NANOS_OF_MICRO = 1_000L;

  private final MemorySegment usage = Arena.ofAuto().allocate(Libc.RUSAGE_BYTES, Long.BYTES);
  private long start;
  private long processorNanos;
  private long waits;

  /** Whether the thread has waited for more than half of the time since the last call. */
  boolean hasWaited() {
    if (Libc.threadUsage(usage) < 0) {
      throw new FileException("getrusage", "this thread", Native.getLastError());
    }
    long startBefore = start;
    long processorNanosBefore = processorNanos;
    long waitsBefore = waits;
    start = System.nanoTime();
    processorNanos = nanosAt(Libc.RUSAGE_USER_AT) + nanosAt(Libc.RUSAGE_SYSTEM_AT);
    waits = usage.get(ValueLayout.JAVA_LONG, Libc.RUSAGE_WAITS_AT);
    return waits > waitsBefore && 2 * (processorNanos - processorNanosBefore) < start - startBefore;
  }

  private long nanosAt(int at) {
    return usage.get(ValueLayout.JAVA_LONG, at) * NANOS_OF_SECOND
        + usage.get(ValueLayout.JAVA_LONG, at + Long.BYTES) * NANOS_OF_MICRO;
  }
}
