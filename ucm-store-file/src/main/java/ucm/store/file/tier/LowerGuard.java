package ucm.store.file.tier;

import java.time.Duration;
import java.util.BitSet;
import java.util.function.Consumer;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.store.file.eviction.EvictionGuard;

/**
 * Lets a block be removed from the upper tier when the lower one has it. What it has not is written to it
 * first. There is nothing to remember, so this holds after a restart, and whichever process wrote the block.
 */
final class LowerGuard implements EvictionGuard {

  private final LowerTier lower;
  private final WriteBehind writes;
  private final TierMetrics metrics;
  private final long patienceNanos;
  private final Consumer<FlushResult> untold;

  /**
   * A guard.
   *
   * @param patienceNanos how long one question may take to write blocks
   * @param untold takes what a flush of the lower tier said that no caller has asked for
   */
  LowerGuard(
      LowerTier lower,
      WriteBehind writes,
      TierMetrics metrics,
      long patienceNanos,
      Consumer<FlushResult> untold) {
    this.lower = lower;
    this.writes = writes;
    this.metrics = metrics;
    this.patienceNanos = patienceNanos;
    this.untold = untold;
  }

  @Override
  public BitSet mayGo(BlockIds ids) {
    BitSet there = lower.lookup(ids);
    BitSet missing = new BitSet();
    missing.set(0, ids.size());
    missing.andNot(there);
    if (!missing.isEmpty() && lower.refusal() == null && !writes.isClosed()) {
      writeFirst(ids, missing);
      BlockIds asked = ids.select(0, missing);
      BitSet now = lower.lookup(asked);
      int n = 0;
      for (int i = missing.nextSetBit(0); i >= 0; i = missing.nextSetBit(i + 1)) {
        there.set(i, now.get(n++));
      }
    }
    metrics.keptBlocks().add(ids.size() - there.cardinality());
    return there;
  }

  private void writeFirst(BlockIds ids, BitSet missing) {
    long end = System.nanoTime() + patienceNanos;
    try {
      long _ = writes.await(writes.offer(ids, missing), patienceNanos);
      FlushResult flushed = lower.flush(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
      if (flushed.failedCount() > 0) {
        untold.accept(flushed);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
