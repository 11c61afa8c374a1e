package ucm.store.file.index;

import java.util.BitSet;
import ucm.api.BlockIds;
import ucm.api.Transfer;

/**
 * When this process last used its blocks: a table in memory, so that a use costs no system call. From
 * time to time {@link #drain} hands what is new to the files, whose access times other processes, and
 * the next start, see.
 *
 * <p>The blocks of one call come root first, and the block at position i is recorded as used i
 * nanoseconds earlier: so the leaves of a prefix are colder than its root.
 *
 * <p>Bounded: when more blocks are used between two drains than a set has room for, the oldest use in
 * it is forgotten, and that block counts as used at the time before. Thread-safe, allocates nothing.
 */
public final class AccessTimeTable {

  /** Receives uses. */
  public interface Sink {

    /**
     * One block was used.
     *
     * @return whether that was kept; else it is reported again
     */
    boolean used(long idHigh, long idLow, long atNanos);
  }

  private static final int SETS = 1 << 15;
  private static final int WAYS = 4;
  private static final int LOCKS = 64;

  private final long[] highs = new long[SETS * WAYS];
  private final long[] lows = new long[SETS * WAYS];
  // 0 is a free slot.
  private final long[] times = new long[SETS * WAYS];
  // The time last written to the file; 0 for none.
  private final long[] told = new long[SETS * WAYS];
  private final boolean[] isNew = new boolean[SETS * WAYS];
  private final Object[] locks = new Object[LOCKS];
  private final long leastNanos;

  /**
   * Knows of no use.
   *
   * @param leastNanos a use is written to a file only when it was so much later than the one written before
   */
  public AccessTimeTable(long leastNanos) {
    this.leastNanos = leastNanos;
    for (int i = 0; i < LOCKS; i++) {
      locks[i] = new Object();
    }
  }

  /** Records the first blocks of a list, which come root first. */
  public void record(BlockIds ids, int count, long nowNanos) {
    for (int i = 0; i < count; i++) {
      record(ids.high(i), ids.low(i), nowNanos - i);
    }
  }

  /** Records those blocks of a list that are set. */
  public void record(BlockIds ids, BitSet used, long nowNanos) {
    for (int i = used.nextSetBit(0); i >= 0; i = used.nextSetBit(i + 1)) {
      record(ids.high(i), ids.low(i), nowNanos - i);
    }
  }

  /** Records the blocks of a transfer, which come root first. */
  public void record(Transfer transfer, long nowNanos) {
    BlockIds ids = transfer.ids();
    for (int i = 0; i < transfer.shardCount(); i++) {
      boolean first = i == 0 || ids.low(i) != ids.low(i - 1) || ids.high(i) != ids.high(i - 1);
      if (first) {
        record(ids.high(i), ids.low(i), nowNanos - i);
      }
    }
  }

  private void record(long idHigh, long idLow, long atNanos) {
    int set = set(idLow);
    synchronized (locks[set & (LOCKS - 1)]) {
      int slot = find(set, idHigh, idLow);
      if (slot < 0) {
        slot = oldest(set);
        highs[slot] = idHigh;
        lows[slot] = idLow;
        times[slot] = 0;
        told[slot] = 0;
        isNew[slot] = false;
      }
      if (atNanos > times[slot]) {
        times[slot] = atNanos;
        isNew[slot] |= atNanos - told[slot] >= leastNanos;
      }
    }
  }

  /** Whether a block was used since the times were last written. */
  public boolean isNew(long idHigh, long idLow) {
    int set = set(idLow);
    synchronized (locks[set & (LOCKS - 1)]) {
      int slot = find(set, idHigh, idLow);
      return slot >= 0 && isNew[slot];
    }
  }

  /** Chooses blocks. */
  public interface Choice {
    boolean takes(long idHigh, long idLow);
  }

  /** Reports the uses of chosen blocks that were not reported yet, outside the locks. */
  public void drain(Choice choice, Sink sink) {
    for (int slot = 0; slot < times.length; slot++) {
      long high;
      long low;
      long time;
      synchronized (locks[slot / WAYS & (LOCKS - 1)]) {
        if (!isNew[slot] || !choice.takes(highs[slot], lows[slot])) {
          continue;
        }
        high = highs[slot];
        low = lows[slot];
        time = times[slot];
        isNew[slot] = false;
        told[slot] = time;
      }
      if (!sink.used(high, low, time)) {
        record(high, low, time);
        tellAgain(high, low);
      }
    }
  }

  private void tellAgain(long idHigh, long idLow) {
    int set = set(idLow);
    synchronized (locks[set & (LOCKS - 1)]) {
      int slot = find(set, idHigh, idLow);
      if (slot >= 0) {
        isNew[slot] = true;
      }
    }
  }

  // Ids are hashes; any bits of them are as good as others.
  private static int set(long idLow) {
    return (int) idLow & (SETS - 1);
  }

  private int find(int set, long idHigh, long idLow) {
    for (int slot = set * WAYS; slot < (set + 1) * WAYS; slot++) {
      if (lows[slot] == idLow && highs[slot] == idHigh && times[slot] != 0) {
        return slot;
      }
    }
    return -1;
  }

  /** A slot to be given away: free, or reported already, or used longest ago, in this order. */
  private int oldest(int set) {
    int best = set * WAYS;
    for (int slot = best + 1; slot < (set + 1) * WAYS; slot++) {
      boolean better = isNew[slot] == isNew[best] ? times[slot] < times[best] : !isNew[slot];
      best = better ? slot : best;
    }
    return best;
  }
}
