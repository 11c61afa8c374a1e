package ucm.store.file.lookup;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import ucm.api.BlockIds;

/**
 * Blocks of one look-up that threads look up on disk while its caller waits. They are taken one by
 * one, in order, without a lock, so that a thread that hangs holds one block and no more; and a
 * look-up that stops at its first miss begins with no more of them once it has found one. The first
 * answer for a block counts. A block costs two bits.
 */
final class LookupWave {

  /** Tells of a block whether it is to be called absent without an answer. */
  @FunctionalInterface
  interface Hidden {
    boolean isHidden(long idHigh, long idLow);
  }

  private static final VarHandle WORD = MethodHandles.arrayElementVarHandle(long[].class);
  // A word has the bits of this many ids: its low half says which are asked for and have no answer,
  // its high half which are present.
  private static final int IDS_OF_WORD = 32;
  private static final long ALL_OPEN = (1L << IDS_OF_WORD) - 1;

  final BlockIds ids;

  /** Whether nothing after the first absent block matters. */
  final boolean stopsAtMiss;

  /** How many threads were called for this wave; changed under the lock of {@link LookupThreads}. */
  volatile int called;

  private final long[] words;
  // All before it were taken, or need not be. Never falls.
  private final AtomicInteger next = new AtomicInteger();
  // Those from here on are not to be taken. Never rises.
  private final AtomicInteger end;
  // Written under the lock of this.
  private volatile boolean over;
  // Before it, all have answers. Guarded by this.
  private int settled;

  private LookupWave(BlockIds ids, boolean stopsAtMiss) {
    this.ids = ids;
    this.stopsAtMiss = stopsAtMiss;
    this.words = new long[(ids.size() + IDS_OF_WORD - 1) / IDS_OF_WORD];
    this.end = new AtomicInteger(ids.size());
  }

  /** Wants an answer for each of those ids that are {@linkplain #ask asked} for; none are yet. */
  static LookupWave of(BlockIds ids) {
    return new LookupWave(ids, false);
  }

  /** Wants the first absent block; looks nothing up yet. */
  static LookupWave prefix(BlockIds ids) {
    LookupWave wave = new LookupWave(ids, true);
    Arrays.fill(wave.words, ALL_OPEN);
    return wave;
  }

  /** Wants an answer for an id, too; looks nothing up yet. Before any thread knows of the wave. */
  void ask(int i) {
    words[i / IDS_OF_WORD] |= open(i);
  }

  /** How many blocks are neither taken nor answered. */
  int left() {
    int count = 0;
    int last = over ? 0 : end.get();
    for (int i = next.get(); i < last; i += IDS_OF_WORD - i % IDS_OF_WORD) {
      count += Integer.bitCount(openFrom(i, last));
    }
    return count;
  }

  /** Whether {@link #take} may have something. */
  boolean mayHaveMore() {
    return !over && next.get() < end.get();
  }

  /** The next id to look up, or -1 when there is none. */
  int take() {
    while (mayHaveMore()) {
      int before = next.get();
      int i = firstOpen(before, end.get());
      if (next.compareAndSet(before, i + 1) && i < end.get()) {
        return i;
      }
    }
    settle();
    return -1;
  }

  /** Gives an answer. */
  void answer(int i, boolean isPresent) {
    give(i, isPresent);
    // The thread that takes the last block answers after that: one of the last askers sees all
    // answers.
    if (!mayHaveMore()) {
      settle();
    }
  }

  private void give(int i, boolean isPresent) {
    long word = word(i);
    while ((word & open(i)) != 0) {
      long answered = (word ^ open(i)) | (isPresent ? present(i) : 0);
      long found = (long) WORD.compareAndExchange(words, i / IDS_OF_WORD, word, answered);
      if (found == word && !isPresent && stopsAtMiss) {
        end.accumulateAndGet(i, Math::min);
      }
      word = found == word ? answered : found;
    }
  }

  /** Gives the answers itself that need no waiting, even while a thread asks for them. */
  void giveUp(Hidden hidden) {
    for (int i = firstOpen(0, end.get()); i < end.get(); i = firstOpen(i + 1, end.get())) {
      if (hidden.isHidden(ids.high(i), ids.low(i))) {
        give(i, false);
      }
    }
    settle();
  }

  private synchronized void settle() {
    int last = end.get();
    settled = firstOpen(settled, last);
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
    for (int i = 0; i < ids.size(); i++) {
      if ((word(i) & present(i)) != 0) {
        found.set(i);
      }
    }
  }

  /** The first id that is absent or has no answer; how many there are when none is. */
  int firstAbsent() {
    int i = 0;
    while (i < ids.size() && (word(i) & present(i)) != 0) {
      i++;
    }
    return i;
  }

  /** The first id from one on, and before another, that has no answer; the later one when all have. */
  private int firstOpen(int start, int last) {
    for (int i = start; i < last; i += IDS_OF_WORD - i % IDS_OF_WORD) {
      int open = openFrom(i, last);
      if (open != 0) {
        return i - i % IDS_OF_WORD + Integer.numberOfTrailingZeros(open);
      }
    }
    return Math.max(start, last);
  }

  /** Which ids of a word have no answer, from one on and before another. */
  private int openFrom(int i, int last) {
    int first = i - i % IDS_OF_WORD;
    int unused = Math.max(0, IDS_OF_WORD - (last - first));
    return (int) word(i) & (-1 << (i - first)) & (-1 >>> unused);
  }

  private long word(int i) {
    return (long) WORD.getAcquire(words, i / IDS_OF_WORD);
  }

  private static long open(int i) {
    return 1L << (i % IDS_OF_WORD);
  }

  private static long present(int i) {
    return open(i) << IDS_OF_WORD;
  }
}
