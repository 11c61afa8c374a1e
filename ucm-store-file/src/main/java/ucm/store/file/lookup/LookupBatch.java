package ucm.store.file.lookup;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;

/**
 * Blocks of one look-up that threads look up on disk while its caller waits. They are taken one by
 * one, in order, so that a thread that hangs holds one block and no more; and a look-up that stops at its
 * first miss begins with no more of them once it has found one. The first answer for a block counts. A
 * block costs two bits. Thread-safe; the lock is held for no system call.
 */
final class LookupBatch {

  /** Tells of a block whether it is to be called absent without an answer. */
  @FunctionalInterface
  interface Hidden {
    boolean isHidden(long idHigh, long idLow);
  }

  final BlockIds ids;

  /** Whether nothing after the first absent block matters. */
  final boolean stopsAtMiss;

  /** How many threads were called for this batch; changed under the lock of {@link LookupThreads}. */
  volatile int called;

  // Guarded by this. Those asked for that have no answer; those that are present.
  private final BitSet open;
  private final BitSet present;
  // All before it were taken, or need not be.
  private int next;
  // Those from here on are not to be taken.
  private int end;
  private boolean over;

  private LookupBatch(BlockIds ids, boolean stopsAtMiss) {
    this.ids = ids;
    this.stopsAtMiss = stopsAtMiss;
    this.open = new BitSet(ids.size());
    this.present = new BitSet(ids.size());
    this.end = ids.size();
  }

  /** Wants an answer for each of those ids that are {@linkplain #ask asked} for; none are yet. */
  static LookupBatch of(BlockIds ids) {
    return new LookupBatch(ids, false);
  }

  /** Wants the first absent block; looks nothing up yet. */
  static LookupBatch prefix(BlockIds ids) {
    LookupBatch batch = new LookupBatch(ids, true);
    batch.open.set(0, ids.size());
    return batch;
  }

  /** Wants an answer for an id, too; looks nothing up yet. Before any thread knows of the batch. */
  synchronized void ask(int i) {
    open.set(i);
  }

  /** How many blocks are neither taken nor answered. */
  synchronized int left() {
    return mayHaveMore() ? open.get(next, end).cardinality() : 0;
  }

  /** Whether {@link #take} may have something. */
  synchronized boolean mayHaveMore() {
    return !over && next < end;
  }

  /** The next id to look up, or -1 when there is none. */
  synchronized int take() {
    int i = mayHaveMore() ? open.nextSetBit(next) : -1;
    if (i < 0 || i >= end) {
      next = end;
      return -1;
    }
    next = i + 1;
    return i;
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

  /** Gives the answers itself that need no waiting, even while a thread asks for them. */
  synchronized void giveUp(Hidden hidden) {
    for (int i = open.nextSetBit(0); i >= 0 && i < end; i = open.nextSetBit(i + 1)) {
      if (hidden.isHidden(ids.high(i), ids.low(i))) {
        give(i, false);
      }
    }
    settle();
  }

  private void settle() {
    // While blocks are left to be taken, some answer is missing.
    if (!over && (next >= end || open.nextSetBit(next) < 0) && isAnswered()) {
      stop();
    }
  }

  /** Ends the batch with the answers there are. */
  synchronized void stop() {
    over = true;
    notifyAll();
  }

  /** Waits for the end of the batch, no longer than some time; returns whether it has ended. */
  synchronized boolean await(long nanos) throws InterruptedException {
    long deadline = System.nanoTime() + nanos;
    for (long left = nanos; !over && left > 0; left = deadline - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return over;
  }

  /** Whether all answers that matter have come. */
  synchronized boolean isAnswered() {
    int first = open.nextSetBit(0);
    return first < 0 || first >= end;
  }

  /** Sets the bits of the ids that are present. */
  synchronized void addTo(BitSet found) {
    found.or(present);
  }

  /** The first id that is absent or has no answer; how many there are when none is. */
  synchronized int firstAbsent() {
    return present.nextClearBit(0);
  }
}
