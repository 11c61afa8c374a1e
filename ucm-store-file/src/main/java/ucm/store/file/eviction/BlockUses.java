package ucm.store.file.eviction;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardListener;
import ucm.api.Transfer;

/**
 * Records in {@link AccessTimeTable} when blocks were used. Where space is kept these are
 * look-ups, loads and dumps, of which the collector wants to know. Elsewhere they are loads, which the
 * file system would note otherwise, in the middle of the load. Thread-safe, allocates nothing.
 */
public final class BlockUses {

  /** Listens to a transfer that is no use of its blocks, as when they are copied to another stage. */
  public static final ShardListener NO_USE = (transfer, shard, outcome) -> {};

  // Null where they are not recorded.
  private final @Nullable AccessTimeTable recorded;
  private final boolean isEachUse;
  private final LongSupplier clock;
  // What is added to the clock to get the time since 1970.
  private final long wallOffsetNanos;

  /**
   * Begins.
   *
   * @param recorded where uses are recorded, or null
   * @param isEachUse whether look-ups and dumps are recorded, too
   */
  public BlockUses(@Nullable AccessTimeTable recorded, boolean isEachUse, LongSupplier clock) {
    this.recorded = recorded;
    this.isEachUse = isEachUse;
    this.clock = clock;
    wallOffsetNanos = TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()) - clock.getAsLong();
  }

  /** The time since 1970. */
  public long wallNanos() {
    return clock.getAsLong() + wallOffsetNanos;
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
}
