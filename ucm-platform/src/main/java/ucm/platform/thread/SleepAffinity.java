package ucm.platform.thread;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.platform.libc.Libc;

/**
 * Where a thread sleeps. On a machine of a few processors two threads that are called one right after
 * the other are often put on one of them: it was idle when the second was called, as the first was
 * still on its way there, and the processor of their caller falls idle right after. They share
 * it for as long as some milliseconds. So each sleeps on one half of the processors, and those called
 * one after the other on different halves. Awake, a thread goes wherever the kernel sends it.
 *
 * <p>Where there are more processors than a few, or one, the kernel is left alone. For one thread.
 */
final class SleepAffinity {

  // With more it was not measured, and the kernel finds an idle one more easily.
  private static final int FEW = 4;

  private final MemorySegment mask = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);

  // Where the thread may run when awake; 0 when it may there now.
  private long before;

  /**
   * Keeps the calling thread, which is about to sleep, to a half of its processors.
   *
   * @param upper whether to the half with the higher numbers
   */
  void enter(boolean upper) {
    // Fails where there are more processors than bits.
    if (Libc.affinity(mask) != 0) {
      return;
    }
    long all = mask.get(ValueLayout.JAVA_LONG, 0);
    int count = Long.bitCount(all);
    if (count < 2 || count > FEW) {
      return;
    }
    long lower = all;
    for (int i = 0; i < count - count / 2; i++) {
      lower &= ~Long.highestOneBit(lower);
    }
    mask.set(ValueLayout.JAVA_LONG, 0, upper ? all & ~lower : lower);
    if (Libc.setAffinity(mask) == 0) {
      before = all;
    }
  }

  /** Lets it run where it could before. */
  void leave() {
    if (before != 0) {
      mask.set(ValueLayout.JAVA_LONG, 0, before);
      Libc.setAffinity(mask);
      before = 0;
    }
  }
}
