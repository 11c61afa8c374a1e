package ucm.store.file.tier;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.platform.table.ConcurrentBlockSet;

/**
 * Keeps what was loaded from the lower tier in the upper one as well. A shard is copied into staging memory
 * while the caller's memory may still be read, and written from there, so that no load waits for it. What
 * finds no staging memory is not kept. Thread-safe.
 */
final class Promotions {

  /** How many blocks are remembered. */
  static final int REMEMBERED_BLOCKS = 1 << 17;

  private final Store upper;
  private final Staging staging;
  private final TierMetrics metrics;
  // Blocks that were loaded once, and those that were loaded again; null when all are admitted.
  private final @Nullable ConcurrentBlockSet seen;
  private final @Nullable ConcurrentBlockSet again;
  private final ConcurrentBlockSet below;
  private final AtomicInteger removals = new AtomicInteger();
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition none = lock.newCondition();
  // Guarded by lock.
  private int open;

  /**
   * Has kept nothing yet.
   *
   * @param below takes the blocks that are offered to the upper tier
   */
  Promotions(
      Store upper,
      Staging staging,
      boolean admitsAll,
      ConcurrentBlockSet below,
      TierMetrics metrics) {
    this.upper = upper;
    this.below = below;
    this.staging = staging;
    this.metrics = metrics;
    seen = admitsAll ? null : new ConcurrentBlockSet(REMEMBERED_BLOCKS);
    again = admitsAll ? null : new ConcurrentBlockSet(REMEMBERED_BLOCKS);
  }

  /** What loads that began before bring is not kept any more; waits for what is being written. */
  void dropAll(long nanos) throws InterruptedException {
    removals.incrementAndGet();
    lock.lock();
    try {
      long left = nanos;
      while (open > 0 && left > 0) {
        left = none.awaitNanos(left);
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Prepares to keep shards of a load from the lower tier.
   *
   * @param others blocks of which the same load had other shards from the upper tier, which are not here
   */
  Promotion begin(Transfer transfer, Set<BlockIds> others) {
    return new Promotion(transfer, admitted(transfer), others);
  }

  /** The shards of blocks that are to be kept; null for all. */
  private @Nullable BitSet admitted(Transfer transfer) {
    if (seen == null || again == null) {
      return null;
    }
    BlockIds ids = transfer.ids();
    BitSet admitted = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      // A block that is loaded layer by layer is used once, with its first shard.
      if (transfer.shardIndex(i) == 0) {
        boolean isKnown = seen.contains(ids.high(i), ids.low(i));
        boolean _ = (isKnown ? again : seen).add(ids.high(i), ids.low(i));
      }
    }
    for (int i = 0; i < ids.size(); i++) {
      admitted.set(i, again.contains(ids.high(i), ids.low(i)));
    }
    return admitted;
  }

  private void begun() {
    lock.lock();
    try {
      open++;
    } finally {
      lock.unlock();
    }
  }

  private void ended() {
    lock.lock();
    try {
      if (--open == 0) {
        none.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** The shards of one load. */
  final class Promotion {

    private final Transfer transfer;
    private final @Nullable BitSet admitted;
    private final int[] slots;
    private final int removalsBefore = removals.get();

    // Those that are not to be kept.
    private final Set<BlockIds> incomplete;

    private Promotion(Transfer transfer, @Nullable BitSet admitted, Set<BlockIds> incomplete) {
      this.incomplete = new HashSet<>(incomplete);
      this.transfer = transfer;
      this.admitted = admitted;
      slots = new int[transfer.shardCount()];
      Arrays.fill(slots, Staging.NONE);
    }

    /** Copies a shard that has arrived; several threads may do so for different ones. */
    void take(int shard) {
      if (admitted != null && !admitted.get(shard)) {
        return;
      }
      int slot = staging.tryTake();
      if (slot == Staging.NONE) {
        metrics.unpromotedShards().increment();
        return;
      }
      staging.copy(transfer, shard, slot);
      slots[shard] = slot;
    }

    /** Writes the shards of those blocks of which all have arrived; called once, after all. */
    void offer() {
      begun();
      Transfer.Builder builder = Transfer.packed(transfer.layout());
      boolean isAny = false;
      if (removals.get() == removalsBefore) {
        findIncomplete();
        for (int i = 0; i < slots.length; i++) {
          long high = transfer.ids().high(i);
          long low = transfer.ids().low(i);
          if (slots[i] != Staging.NONE && !incomplete.contains(BlockIds.of(high, low))) {
            staging.place(builder.shard(high, low, transfer.shardIndex(i)), slots[i]);
            boolean _ = below.add(high, low);
            isAny = true;
          }
        }
      }
      if (!isAny) {
        end();
        return;
      }
      try {
        Task dump = upper.dump(builder.build());
        dump.whenTerminal(
            () -> {
              metrics.promotedShards().add(dump.result().okCount());
              end();
            });
      } catch (RuntimeException e) {
        // It has enough to do, or closes.
        metrics.unpromotedShards().add(slots.length);
        end();
      }
    }

    private void findIncomplete() {
      for (int i = 0; i < slots.length; i++) {
        if (slots[i] == Staging.NONE) {
          incomplete.add(transfer.ids().slice(i, i + 1));
        }
      }
    }

    private void end() {
      staging.give(slots);
      ended();
    }
  }
}
