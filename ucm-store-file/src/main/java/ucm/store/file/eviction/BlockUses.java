package ucm.store.file.eviction;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.NativePath;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.health.FolderExecutor;

/**
 * Records in {@link AccessTimeTable} when blocks were used, and writes that to their files. Where space
 * is kept these are look-ups, loads and dumps, of which the collector wants to know. Elsewhere they are
 * loads, which the file system would note otherwise, in the middle of the load. Thread-safe; to record
 * allocates nothing.
 */
public final class BlockUses {

  /** Listens to a transfer that is no use of its blocks, as when they are copied to another stage. */
  public static final ShardListener NO_USE = (transfer, shard, outcome) -> {};

  private static final Logger LOG = LoggerFactory.getLogger(BlockUses.class);

  private final BlockFiles files;
  // Null where they are not recorded.
  private final @Nullable AccessTimeTable recorded;
  private final boolean isEachUse;
  private final FolderExecutor executors;
  private final LongSupplier clock;
  private final long patienceNanos;
  // What is added to the clock to get the time since 1970.
  private final long wallOffsetNanos;

  /**
   * Begins.
   *
   * @param recorded where uses are recorded, or null
   * @param isEachUse whether look-ups and dumps are recorded, too
   * @param patienceNanos how long after its use a block that has no file may still be being dumped
   */
  public BlockUses(
      BlockFiles files,
      @Nullable AccessTimeTable recorded,
      boolean isEachUse,
      FolderExecutor executors,
      LongSupplier clock,
      long patienceNanos) {
    this.files = files;
    this.recorded = recorded;
    this.isEachUse = isEachUse;
    this.executors = executors;
    this.clock = clock;
    this.patienceNanos = patienceNanos;
    wallOffsetNanos = TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()) - clock.getAsLong();
  }

  /** The time since 1970. */
  private long wallNanos() {
    return clock.getAsLong() + wallOffsetNanos;
  }

  /** See {@link ucm.api.Store#notePrompt}. */
  public void prompt(BlockIds ids) {
    AccessTimeTable uses = recorded;
    if (uses != null && isEachUse) {
      uses.chain(ids);
    }
  }

  /** Notes that blocks were looked up and found; they come root first. */
  public BitSet found(BlockIds ids, BitSet present) {
    AccessTimeTable uses = recorded;
    if (uses != null && isEachUse) {
      uses.record(ids, present, wallNanos());
    }
    return present;
  }

  /** Notes that the blocks up to the last one were looked up and found; they come root first. */
  public int found(BlockIds ids, int last) {
    AccessTimeTable uses = recorded;
    if (uses != null && isEachUse) {
      uses.record(ids, last + 1, wallNanos());
    }
    return last;
  }

  /** Notes that the blocks of a transfer are moved, unless its listener is {@link #NO_USE}. */
  public void moved(Transfer transfer, boolean isDump) {
    AccessTimeTable uses = recorded;
    if (uses != null && (isEachUse || !isDump) && !transfer.listener().equals(NO_USE)) {
      uses.record(transfer, wallNanos());
    }
  }

  /** Writes to the files what was recorded and is not written yet; each directory by itself. */
  public synchronized void flush() {
    AccessTimeTable uses = recorded;
    if (uses == null) {
      return;
    }
    uses.raise();
    executors.forEach(
        executors.all(),
        directory -> {
          NativePath path = new NativePath();
          uses.drain(
              (high, low) -> files.paths.directoryOf(high, low) == directory,
              (high, low, atNanos) -> {
                executors.step(directory);
                return touch(files.paths.block(path, high, low), atNanos);
              });
        });
  }

  /** Gives a block's file the time of its last use; false to be asked again. */
  private boolean touch(NativePath path, long atNanos) {
    try {
      // One that is not there is still being dumped, or removed.
      return files.operations.touch(path, atNanos) || wallNanos() - atNanos > patienceNanos;
    } catch (FileException e) {
      LOG.debug("{} cannot note the use of a block: {}", files.paths.store(), e.getMessage());
      return true;
    }
  }
}
