package ucm.store.posix;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;

/**
 * Blocks of one look-up that several threads look up on disk. They are taken in order, and a look-up
 * that stops at its first miss begins with no more of them once it has found one.
 */
final class LookupWave {

  final BlockIds ids;

  private final int[] asked;
  private final int size;
  private final boolean stopsAtMiss;

  // Guarded by this.
  private final BitSet answered = new BitSet();
  private final BitSet present = new BitSet();
  private int next;
  private int end;
  private boolean over;

  /**
   * Looks nothing up yet.
   *
   * @param asked which of {@code ids} to look up, in order
   * @param size how many of {@code asked} count
   * @param stopsAtMiss whether nothing behind the first absent block matters
   */
  LookupWave(BlockIds ids, int[] asked, int size, boolean stopsAtMiss) {
    this.ids = ids;
    this.asked = asked;
    this.size = size;
    this.stopsAtMiss = stopsAtMiss;
    this.end = size;
  }

  int size() {
    return size;
  }

  /** The next block to look up, as a place in this wave, or -1 when there is none. */
  synchronized int take() {
    return over || next >= end ? -1 : next++;
  }

  /** Which of the ids a place stands for. */
  int id(int place) {
    return asked[place];
  }

  /** Gives an answer; one that comes too late is dropped. */
  synchronized void answer(int place, boolean isPresent) {
    if (over) {
      return;
    }
    answered.set(place);
    present.set(place, isPresent);
    if (!isPresent && stopsAtMiss) {
      end = Math.min(end, place);
    }
    if (answered.nextClearBit(0) >= end) {
      stop();
    }
  }

  /** Ends the wave with the answers there are. */
  synchronized void stop() {
    over = true;
    notifyAll();
  }

  /**
   * Waits for the answers, and ends the wave.
   *
   * @return whether all that matter came; not when the time was up, the thread was interrupted, or
   *     the wave was {@linkplain #stop stopped}
   */
  synchronized boolean await(long nanos) {
    long deadline = System.nanoTime() + nanos;
    try {
      for (long left = nanos; !over && left > 0; left = deadline - System.nanoTime()) {
        TimeUnit.NANOSECONDS.timedWait(this, left);
      }
    } catch (InterruptedException e) {
      // What is not known by now is absent; the caller finds its interrupt where it left it.
      Thread.currentThread().interrupt();
    }
    over = true;
    return answered.nextClearBit(0) >= end;
  }

  /** Sets the bits of the ids that are present. */
  synchronized void addTo(BitSet found) {
    for (int i = present.nextSetBit(0); i >= 0; i = present.nextSetBit(i + 1)) {
      found.set(asked[i]);
    }
  }

  /** The first of the ids that is absent or has no answer; the number of all ids when none is. */
  synchronized int firstAbsent() {
    int place = Math.min(end, present.nextClearBit(0));
    return place >= size ? ids.size() : asked[place];
  }
}
