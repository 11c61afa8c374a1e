package ucm.store.posix;

import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Transfer;

/**
 * Tells {@link LastUses} of every use of a block, and of when it was; does nothing where no space is
 * kept, as then nobody asks which block is cold. Thread-safe, allocates nothing.
 */
final class BlockUses {

  /** Where they are recorded, or null when they are not. */
  final @Nullable LastUses recorded;

  private final LongSupplier clock;
  // What is added to the clock to get the time since 1970.
  private final long wallOffsetNanos;

  BlockUses(@Nullable LastUses recorded, LongSupplier clock) {
    this.recorded = recorded;
    this.clock = clock;
    wallOffsetNanos = TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()) - clock.getAsLong();
  }

  /** The time since 1970. */
  long wallNanos() {
    return clock.getAsLong() + wallOffsetNanos;
  }

  /** Notes that blocks were looked up and found; they come root first. */
  BitSet found(BlockIds ids, BitSet present) {
    LastUses uses = recorded;
    if (uses != null) {
      uses.record(ids, present, wallNanos());
    }
    return present;
  }

  /** Notes that the blocks up to the last one were looked up and found; they come root first. */
  int found(BlockIds ids, int last) {
    LastUses uses = recorded;
    if (uses != null) {
      uses.record(ids, last + 1, wallNanos());
    }
    return last;
  }

  /** Notes that the blocks of a transfer are moved. */
  void moved(Transfer transfer) {
    LastUses uses = recorded;
    if (uses != null) {
      uses.record(transfer, wallNanos());
    }
  }
}
