package ucm.store.file.lookup;

import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import ucm.api.BlockIds;
import ucm.store.file.format.BlockPaths;

/**
 * Blocks of one look-up that threads look up on disk while its caller waits. Those of a directory are taken
 * one by one, in order, so that a thread that hangs holds one block and no more; and a look-up that stops
 * at its first miss begins with no more of them once it has found one. The first answer for a block
 * counts. Thread-safe; the lock is held for no system call.
 */
final class LookupBatch {

  final BlockIds ids;

  /** Whether nothing after the first absent block matters. */
  final boolean stopsAtMiss;

  private final BlockPaths paths;

  // Guarded by this. Those asked for that have no answer; those that are present.
  private final BitSet open;
  private final BitSet present;
  // By directory: all before it were taken, or need not be.
  private final int[] next;
  // Those from here on are not to be taken.
  private int end;
  // Also read without the lock.
  private volatile boolean over;

  /**
   * Wants an answer for some ids.
   *
   * @param asked which ones; is taken over
   * @param stopsAtMiss whether it wants to know no more than the first absent one
   */
  LookupBatch(BlockPaths paths, BlockIds ids, BitSet asked, boolean stopsAtMiss) {
    this.paths = paths;
    this.ids = ids;
    this.stopsAtMiss = stopsAtMiss;
    this.open = asked;
    this.present = new BitSet(ids.size());
    this.next = new int[paths.directories().size()];
    this.end = ids.size();
  }

  /** Whether {@link #take} would have something. */
  synchronized boolean hasMore(int directory) {
    return find(directory) >= 0;
  }

  /** The next id to look up in a directory, or -1 when there is none. */
  synchronized int take(int directory) {
    int i = find(directory);
    next[directory] = i < 0 ? end : i + 1;
    return i;
  }

  private int find(int directory) {
    int i = over ? -1 : open.nextSetBit(next[directory]);
    while (i >= 0 && i < end && paths.directoryOf(ids.high(i), ids.low(i)) != directory) {
      i = open.nextSetBit(i + 1);
    }
    return i < end ? i : -1;
  }

  /** Gives an answer. */
  synchronized void answer(int i, boolean isPresent) {
    give(i, isPresent);
    settle();
  }

  private void give(int i, boolean isPresent) {
    if (!open.get(i)) {
      return;
    }
    open.clear(i);
    if (isPresent) {
      present.set(i);
    } else if (stopsAtMiss) {
      end = Math.min(end, i);
    }
  }

  /** Calls those ids absent that are to be, even while a thread asks for them. */
  synchronized void giveUp(IntPredicate isHidden) {
    for (int i = open.nextSetBit(0); i >= 0 && i < end; i = open.nextSetBit(i + 1)) {
      if (isHidden.test(i)) {
        give(i, false);
      }
    }
    settle();
  }

  private void settle() {
    if (!over && isAnswered()) {
      stop();
    }
  }

  /** Ends the batch with the answers there are. */
  synchronized void stop() {
    over = true;
    Arrays.fill(next, end);
    notifyAll();
  }

  /** Whether the batch has ended; waits for no lock. */
  boolean isOver() {
    return over;
  }

  /** Waits for the end of the batch, no longer than some time; returns whether it has ended. */
  synchronized boolean await(long nanos) throws InterruptedException {
    long deadline = System.nanoTime() + nanos;
    long left = nanos;
    while (!over && left > 0) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
      left = deadline - System.nanoTime();
    }
    return over;
  }

  /** Whether all answers that matter have come. */
  synchronized boolean isAnswered() {
    int first = open.nextSetBit(0);
    return first < 0 || first >= end;
  }

  /** The ids that are present; a copy. */
  synchronized BitSet present() {
    return (BitSet) present.clone();
  }
}
