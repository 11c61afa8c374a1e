package ucm.store.file.eviction;

import java.util.Arrays;
import java.util.BitSet;
import ucm.api.BlockIds;
import ucm.api.Transfer;
import ucm.platform.table.BlockTable;

/**
 * When this process last used its blocks: a table in memory, so that a use costs no system call. From
 * time to time {@link #drain} hands what is new to the files, whose access times other processes, and
 * the next start, see.
 *
 * <p>The blocks of one call come root first, and the block at position i is recorded as used i
 * nanoseconds earlier: so the leaves of a prefix are colder than its root. Calls do not tell all of it:
 * later blocks of a prompt are dumped later, one by one, or are used while the engine or an upper stage
 * has the earlier ones. So {@link #chain} learns which block comes before which, and {@link #raise} has
 * each count as used after those that follow it.
 *
 * <p>Bounded: a full table forgets a block whose use was handed on, or else any; it counts as used at the
 * time before. Thread-safe; allocates only to grow.
 */
public final class AccessTimeTable {

  public interface Sink {

    /** One block was used. Returns whether that was kept; else it is reported again. */
    boolean used(long idHigh, long idLow, long atNanos);
  }

  public interface Choice {
    boolean takes(long idHigh, long idLow);
  }

  private static final int MAX_BLOCKS = 1 << 18;
  private static final int FIRST_BLOCKS = 1 << 10;

  private final long leastNanos;

  // Guarded by this, as is what follows, by the entry of a block.
  private final BlockTable blocks = new BlockTable(FIRST_BLOCKS);
  private long[] times = new long[FIRST_BLOCKS];
  // The time last written to the file; 0 for none.
  private long[] told = new long[FIRST_BLOCKS];
  private final BitSet isNew = new BitSet();
  // The id of the block before it in its prompt, two words an entry, where it is known.
  private long[] before = new long[2 * FIRST_BLOCKS];
  private final BitSet hasBefore = new BitSet();
  private int forgetNext;

  /**
   * Knows of no use.
   *
   * @param leastNanos a use is written to a file only when it was so much later than the one written before
   */
  public AccessTimeTable(long leastNanos) {
    this.leastNanos = leastNanos;
  }

  /** Records the first blocks of a list, which come root first. */
  public synchronized void record(BlockIds ids, int count, long nowNanos) {
    for (int i = 0; i < count; i++) {
      record(ids.high(i), ids.low(i), nowNanos - i);
    }
  }

  /** Records those blocks of a list that are set. */
  public synchronized void record(BlockIds ids, BitSet used, long nowNanos) {
    for (int i = used.nextSetBit(0); i >= 0; i = used.nextSetBit(i + 1)) {
      record(ids.high(i), ids.low(i), nowNanos - i);
    }
  }

  /** Records the blocks of a transfer, which come root first. */
  public synchronized void record(Transfer transfer, long nowNanos) {
    BlockIds ids = transfer.ids();
    for (int i = 0; i < transfer.shardCount(); i++) {
      boolean first = i == 0 || ids.low(i) != ids.low(i - 1) || ids.high(i) != ids.high(i - 1);
      if (first) {
        record(ids.high(i), ids.low(i), nowNanos - i);
      }
    }
  }

  /** Learns which block comes before which: these are the blocks of one prompt, root first. */
  public synchronized void chain(BlockIds ids) {
    for (int i = 1; i < ids.size(); i++) {
      int entry = entry(ids.high(i), ids.low(i));
      before[2 * entry] = ids.high(i - 1);
      before[2 * entry + 1] = ids.low(i - 1);
      hasBefore.set(entry);
    }
  }

  /** Has the blocks before those that were used since the last drain count as used after them. */
  public synchronized void raise() {
    // Blocks of a prompt have entries in its order: from its end each is raised once. The bound is
    // for ids that a caller named in a circle.
    int left = 4 * blocks.size();
    for (int entry = isNew.length() - 1; entry >= 0; entry = isNew.previousSetBit(entry - 1)) {
      int at = entry;
      while (hasBefore.get(at) && left-- > 0) {
        long high = before[2 * at];
        long low = before[2 * at + 1];
        int parent = blocks.find(high, low);
        if (parent != BlockTable.NONE && times[parent] > times[at]) {
          break;
        }
        at = record(high, low, times[at] + 1);
      }
    }
  }

  private int record(long idHigh, long idLow, long atNanos) {
    int entry = entry(idHigh, idLow);
    if (atNanos > times[entry]) {
      times[entry] = atNanos;
      isNew.set(entry, isNew.get(entry) || atNanos - told[entry] >= leastNanos);
    }
    return entry;
  }

  private int entry(long idHigh, long idLow) {
    int entry = blocks.find(idHigh, idLow);
    if (entry == BlockTable.NONE) {
      if (blocks.size() == MAX_BLOCKS) {
        forgetOne();
      }
      entry = blocks.put(idHigh, idLow);
      if (entry >= times.length) {
        times = Arrays.copyOf(times, 2 * times.length);
        told = Arrays.copyOf(told, times.length);
        before = Arrays.copyOf(before, 2 * times.length);
      }
      times[entry] = 0;
      told[entry] = 0;
      hasBefore.clear(entry);
    }
    return entry;
  }

  private void forgetOne() {
    int entry = isNew.nextClearBit(forgetNext);
    entry = entry < MAX_BLOCKS ? entry : isNew.nextClearBit(0);
    entry = entry < MAX_BLOCKS ? entry : forgetNext;
    blocks.remove(entry);
    isNew.clear(entry);
    forgetNext = (entry + 1) % MAX_BLOCKS;
  }

  /** Whether a block was used since the times were last written. */
  public synchronized boolean isNew(long idHigh, long idLow) {
    int entry = blocks.find(idHigh, idLow);
    return entry != BlockTable.NONE && isNew.get(entry);
  }

  /** Reports the uses of chosen blocks that were not reported yet, without the lock. */
  public void drain(Choice choice, Sink sink) {
    for (int entry = nextNew(0); entry >= 0; entry = nextNew(entry + 1)) {
      long high;
      long low;
      long time;
      synchronized (this) {
        if (!isNew.get(entry) || !choice.takes(blocks.high(entry), blocks.low(entry))) {
          continue;
        }
        high = blocks.high(entry);
        low = blocks.low(entry);
        time = times[entry];
        isNew.clear(entry);
        told[entry] = time;
      }
      if (!sink.used(high, low, time)) {
        synchronized (this) {
          isNew.set(record(high, low, time));
        }
      }
    }
  }

  private synchronized int nextNew(int from) {
    return isNew.nextSetBit(from);
  }
}
