package ucm.store.posix;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import ucm.api.BlockIds;

/**
 * Blocks of one look-up that threads look up on disk while its caller waits. They are taken one by
 * one, in order, without a lock, so that a thread that hangs holds one block and no more; and a
 * look-up that stops at its first miss begins with no more of them once it has found one. The first
 * answer for a block counts.
 */
final class LookupWave {

  /** Tells of a block whether it is to be called absent without an answer. */
  @FunctionalInterface
  interface Hidden {
    boolean isHidden(long idHigh, long idLow);
  }

  private static final int OPEN = 0;
  private static final int ABSENT = 1;
  private static final int PRESENT = 2;

  final BlockIds ids;

  /** Whether nothing behind the first absent block matters. */
  final boolean stopsAtMiss;

  /** How many threads were called for this wave; changed under the lock of {@link LookupThreads}. */
  volatile int called;

  // Places 0, 1, ... stand for these, or for those of all ids that follow one another.
  private final int[] asked;
  private final int from;
  private final int size;
  private final AtomicIntegerArray answers;
  private final AtomicInteger next = new AtomicInteger();
  private final AtomicInteger end;
  // Written under the lock of this.
  private volatile boolean over;
  // Before it, all have answers. Guarded by this.
  private int settled;

  private LookupWave(BlockIds ids, int[] asked, int from, int size, boolean stopsAtMiss) {
    this.ids = ids;
    this.asked = asked;
    this.from = from;
    this.size = size;
    this.stopsAtMiss = stopsAtMiss;
    this.answers = new AtomicIntegerArray(size);
    this.end = new AtomicInteger(size);
  }

  /**
   * Wants an answer for each of some ids; looks nothing up yet.
   *
   * @param asked which of {@code ids} to look up, in order
   * @param size how many of {@code asked} count
   */
  static LookupWave of(BlockIds ids, int[] asked, int size) {
    return new LookupWave(ids, asked, 0, size, false);
  }

  /** Wants the first absent block of a range; looks nothing up yet. */
  static LookupWave prefix(BlockIds ids, int from, int to) {
    return new LookupWave(ids, new int[0], from, to - from, true);
  }

  /** How many blocks nobody has taken yet. */
  int left() {
    return over ? 0 : Math.max(0, end.get() - next.get());
  }

  /** The next block to look up, as a place in this wave, or -1 when there is none. */
  int take() {
    while (left() > 0) {
      int place = next.getAndIncrement();
      if (place < end.get() && answers.get(place) == OPEN) {
        return place;
      }
    }
    settle();
    return -1;
  }

  /** Which of the ids a place stands for. */
  int id(int place) {
    return stopsAtMiss ? from + place : asked[place];
  }

  /** Gives an answer. */
  void answer(int place, boolean isPresent) {
    give(place, isPresent);
    // Whoever takes the last block answers after that: one of the last askers sees all answers.
    if (next.get() >= end.get()) {
      settle();
    }
  }

  private void give(int place, boolean isPresent) {
    if (answers.compareAndSet(place, OPEN, isPresent ? PRESENT : ABSENT)
        && !isPresent
        && stopsAtMiss) {
      end.accumulateAndGet(place, Math::min);
    }
  }

  /** Gives the answers itself that nobody needs to wait for, whoever is asking for them. */
  void giveUp(Hidden hidden) {
    for (int place = 0; place < end.get(); place++) {
      int i = id(place);
      if (answers.get(place) == OPEN && hidden.isHidden(ids.high(i), ids.low(i))) {
        give(place, false);
      }
    }
    settle();
  }

  private synchronized void settle() {
    int last = end.get();
    while (settled < last && answers.get(settled) != OPEN) {
      settled++;
    }
    if (settled >= last && !over) {
      stop();
    }
  }

  /** Ends the wave with the answers there are. */
  synchronized void stop() {
    over = true;
    notifyAll();
  }

  /** Waits for the end of the wave, no longer than some time; returns whether it has ended. */
  synchronized boolean await(long nanos) throws InterruptedException {
    long deadline = System.nanoTime() + nanos;
    for (long left = nanos; !over && left > 0; left = deadline - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return over;
  }

  /** Whether all answers that matter have come. */
  synchronized boolean isAnswered() {
    return settled >= end.get();
  }

  /** Sets the bits of the ids that are present. */
  void addTo(BitSet found) {
    for (int place = 0; place < size; place++) {
      if (answers.get(place) == PRESENT) {
        found.set(id(place));
      }
    }
  }

  /** The first of the range that is absent or has no answer; the end of the range when none is. */
  int firstAbsent() {
    int place = 0;
    while (place < size && answers.get(place) == PRESENT) {
      place++;
    }
    return from + place;
  }
}
