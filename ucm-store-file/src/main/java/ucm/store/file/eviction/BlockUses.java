package ucm.store.file.eviction;

import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.Transfer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.table.BlockTable;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * When this process last used its blocks: a table in memory, so that a use costs no system call. From
 * time to time {@link #flush} hands what is new to the files, whose access times other processes, and
 * the next start, see. Where space is kept look-ups, loads and dumps are uses, of which the collector wants to
 * know. Elsewhere loads are, which the file system would note otherwise, in the middle of the load.
 *
 * <p>The blocks of one call come root first, and the block at position i is recorded as used i
 * nanoseconds earlier: so the leaves of a prefix are colder than its root. Calls do not tell all of it:
 * later blocks of a prompt are dumped later, one by one, or are used while the engine or an upper stage
 * has the earlier ones. So {@link #prompt} learns which block comes before which, and {@link #raise} has
 * each count as used after those that follow it.
 *
 * <p>Times are those of a clock that is never set. What is added to them to get the time since 1970 is asked for at
 * each flush: where that was wrong, as on a machine that had not asked yet what time it is, the files are told again.
 *
 * <p>Bounded: a full table forgets a block whose use was handed on, or else any; it counts as used at the
 * time before. Thread-safe; to record allocates only to grow.
 */
public final class BlockUses {

  /** What is a use. */
  public enum Kind {
    /** Nothing is: the file system notes uses, or none are noted. */
    NONE,
    LOADS,
    ALL
  }

  private static final Logger LOG = LoggerFactory.getLogger(BlockUses.class);
  private static final int MAX_BLOCKS = 1 << 18;
  private static final int FIRST_BLOCKS = 1 << 10;
  // Without a capacity the times of last use are not urgent; Linux writes one a day.
  private static final long LEAST_BETWEEN_NOTES_NANOS = TimeUnit.HOURS.toNanos(1);
  // As long as the clock is off by less, the order of the times of all files is right.
  private static final long SET_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final FileOperations files;
  private final BlockPaths paths;
  private final Kind kind;
  private final Volumes volumes;
  private final LongSupplier clock;
  private final long patienceNanos;
  private final LongSupplier wallClock;
  // What is added to the clock to get the times here: those since 1970, by what was known at the
  // start.
  private final long offsetNanos;
  // A use is written to a file only when it was so much later than the one written before.
  private final long leastNanos;

  // Guarded by itself, as is what follows, by the entry of a block.
  private final BlockTable blocks = new BlockTable(FIRST_BLOCKS);
  private long[] times = new long[FIRST_BLOCKS];
  // The time last written to the file; 0 for none.
  private long[] told = new long[FIRST_BLOCKS];
  private final BitSet isNew = new BitSet();
  // The id of the block before it in its prompt, two words an entry, where it is known.
  private long[] before = new long[2 * FIRST_BLOCKS];
  private final BitSet hasBefore = new BitSet();
  private int forgetNext;
  // What is added to the times here to get those of files. Only flush writes it.
  private volatile long setByNanos;

  /**
   * Knows of no use.
   *
   * @param clock is never set, in nanoseconds
   * @param wallClock nanoseconds since 1970, as far as the machine knows
   * @param patienceNanos how long after its use a block that has no file may still be being dumped
   */
  public BlockUses(
      FileOperations files,
      BlockPaths paths,
      Kind kind,
      Volumes volumes,
      LongSupplier clock,
      LongSupplier wallClock,
      long patienceNanos) {
    this.files = files;
    this.paths = paths;
    this.kind = kind;
    this.volumes = volumes;
    this.clock = clock;
    this.patienceNanos = patienceNanos;
    leastNanos = kind == Kind.ALL ? 0 : LEAST_BETWEEN_NOTES_NANOS;
    this.wallClock = wallClock;
    offsetNanos = wallClock.getAsLong() - clock.getAsLong();
  }

  /** The time since 1970, as the files are told it. */
  long wallNanos() {
    return wallClock.getAsLong();
  }

  private long now() {
    return clock.getAsLong() + offsetNanos;
  }

  /** See {@link ucm.api.Store#notePrompt}. */
  public void prompt(BlockIds ids) {
    if (kind != Kind.ALL) {
      return;
    }
    synchronized (blocks) {
      for (int i = 1; i < ids.size(); i++) {
        int entry = entry(ids.high(i), ids.low(i));
        before[2 * entry] = ids.high(i - 1);
        before[2 * entry + 1] = ids.low(i - 1);
        hasBefore.set(entry);
      }
    }
  }

  /** Notes that blocks were looked up and found; they come root first. */
  public BitSet found(BlockIds ids, BitSet present) {
    if (kind == Kind.ALL) {
      long now = now();
      synchronized (blocks) {
        for (int i = present.nextSetBit(0); i >= 0; i = present.nextSetBit(i + 1)) {
          record(ids.high(i), ids.low(i), now - i);
        }
      }
    }
    return present;
  }

  /** Notes that the blocks up to the last one were looked up and found; they come root first. */
  public int found(BlockIds ids, int last) {
    if (kind == Kind.ALL) {
      record(ids, last + 1, now());
    }
    return last;
  }

  /** Records the first blocks of a list. */
  void record(BlockIds ids, int count, long nowNanos) {
    synchronized (blocks) {
      for (int i = 0; i < count; i++) {
        record(ids.high(i), ids.low(i), nowNanos - i);
      }
    }
  }

  /** Notes that the blocks of a transfer, root first, are moved. */
  public void moved(Transfer transfer, boolean isDump) {
    boolean isUse = kind == Kind.ALL || (kind == Kind.LOADS && !isDump);
    if (!isUse) {
      return;
    }
    long now = now();
    BlockIds ids = transfer.ids();
    synchronized (blocks) {
      for (int i = 0; i < transfer.shardCount(); i++) {
        if (i == 0 || ids.low(i) != ids.low(i - 1) || ids.high(i) != ids.high(i - 1)) {
          record(ids.high(i), ids.low(i), now - i);
        }
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
  boolean isNew(long idHigh, long idLow) {
    synchronized (blocks) {
      int entry = blocks.find(idHigh, idLow);
      return entry != BlockTable.NONE && isNew.get(entry);
    }
  }

  /** Has the blocks before those that were used since the last flush count as used after them. */
  void raise() {
    synchronized (blocks) {
      // Blocks of a prompt have entries in its order: from its end each is raised once. The bound
      // is
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
  }

  /** Writes to the files what was recorded and is not written yet; each directory by itself. */
  public synchronized void flush() {
    if (kind != Kind.NONE) {
      raise();
      followWallClock();
      volumes.forEach(volumes.all(), this::flush);
    }
  }

  /**
   * Has all files told again when the time since 1970 is another than it was. A machine that stood still meanwhile
   * looks the same: what it had used then counts as used when it went on.
   */
  private void followWallClock() {
    long setBy = wallClock.getAsLong() - now();
    long change = setBy - setByNanos;
    if (Math.abs(change) < SET_NANOS) {
      return;
    }
    setByNanos = setBy;
    synchronized (blocks) {
      for (int entry = 0; entry < blocks.end(); entry++) {
        isNew.set(entry, times[entry] != 0);
      }
    }
    LOG.info(
        "{} tells files again when their blocks were used, as the clock was set by {} s",
        paths.store(),
        TimeUnit.NANOSECONDS.toSeconds(change));
  }

  private void flush(Volume volume) {
    NativePath path = new NativePath();
    for (int entry = nextNew(0); entry >= 0; entry = nextNew(entry + 1)) {
      long high;
      long low;
      long time;
      synchronized (blocks) {
        high = blocks.high(entry);
        low = blocks.low(entry);
        time = times[entry];
        if (!isNew.get(entry) || paths.directoryOf(high, low) != volume.number) {
          continue;
        }
        isNew.clear(entry);
        told[entry] = time;
      }
      volume.step();
      if (!touch(paths.block(path, high, low), time)) {
        synchronized (blocks) {
          isNew.set(record(high, low, time));
        }
      }
    }
  }

  private int nextNew(int from) {
    synchronized (blocks) {
      return isNew.nextSetBit(from);
    }
  }

  /** Gives a block's file the time of its last use; false to be asked again. */
  private boolean touch(NativePath path, long atNanos) {
    try {
      // One that is not there is still being dumped, or removed.
      return files.touch(path, atNanos + setByNanos) || now() - atNanos > patienceNanos;
    } catch (FileException e) {
      LOG.debug("{} cannot note the use of a block: {}", paths.store(), e.getMessage());
      return true;
    }
  }
}
