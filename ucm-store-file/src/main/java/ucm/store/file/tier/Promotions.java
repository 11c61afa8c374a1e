package ucm.store.file.tier;

import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.platform.table.ConcurrentBlockSet;

/**
 * Keeps blocks that were loaded from the lower tier in the upper one as well. Each is read there once more, in
 * the background, so that no load has anything to do for it: the lower tier gives each block that is kept
 * twice. Loads go first: while there are any, keeping gets a twentieth of the processors' time. Thread-safe.
 */
final class Promotions {

  private static final int MOST_WAITING = 1 << 16;
  private static final int MOST_MOVING = 2;
  // How long nothing is read in vain after a block that could not be kept, as when the disk is
  // full.
  private static final long AFTER_FAILURE_NANOS = TimeUnit.SECONDS.toNanos(1);
  // Between the tasks of one request there is less.
  private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  // Loads that are over sooner have the processors to themselves.
  private static final long BURST_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  // How long is rested after a block, beside loads, for as long as the block took.
  private static final double REST =
      Math.max(0, 20.0 / Runtime.getRuntime().availableProcessors() - 1);

  private final Store upper;
  private final LowerTier lower;
  private final TierMoves staging;
  private final int mostMoving;
  private final TierMetrics metrics;
  // Blocks that were loaded once; null when all are admitted.
  private final @Nullable ConcurrentBlockSet seen;
  // Guarded by this, as is what follows.
  private final SequencedSet<BlockIds> waiting = new LinkedHashSet<>();
  private int moving;
  private int loads;
  private long lastLoad = System.nanoTime();
  private long restsUntil = lastLoad;
  private boolean hasFailed;
  private boolean closed;

  /** Has kept nothing yet. */
  Promotions(
      Store upper, LowerTier lower, TierMoves staging, boolean admitsAll, TierMetrics metrics) {
    this.mostMoving = Math.min(MOST_MOVING, staging.blocks());
    this.upper = upper;
    this.lower = lower;
    this.staging = staging;
    this.metrics = metrics;
    seen = admitsAll ? null : new ConcurrentBlockSet(LowerTier.REMEMBERED_BLOCKS);
  }

  /** What was loaded before is not kept any more; waits for what is on its way. */
  synchronized void dropAll(long nanos) throws InterruptedException {
    waiting.clear();
    long end = System.nanoTime() + nanos;
    for (long left = nanos; moving > 0 && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
  }

  /** The lower tier had some shards of a transfer. */
  synchronized void loaded(Transfer transfer, BitSet shards) {
    BlockIds ids = transfer.ids();
    int last = -1;
    for (int i = shards.nextSetBit(0); i >= 0; i = shards.nextSetBit(i + 1)) {
      boolean isNext = last < 0 || ids.high(i) != ids.high(last) || ids.low(i) != ids.low(last);
      if (isNext && isAdmitted(ids.high(i), ids.low(i), transfer.shardIndex(i))) {
        offer(ids.slice(i, i + 1));
      }
      last = i;
    }
    notifyAll();
  }

  private boolean isAdmitted(long idHigh, long idLow, int shard) {
    // A block that is loaded layer by layer is used once, with its first shard.
    if (seen == null || shard > 0) {
      return seen == null;
    }
    return !seen.add(idHigh, idLow);
  }

  private void offer(BlockIds id) {
    boolean isFailing = hasFailed && restsUntil - System.nanoTime() > 0;
    if (!isFailing && waiting.size() < MOST_WAITING) {
      var _ = waiting.add(id);
    } else if (!waiting.contains(id)) {
      metrics.unpromotedShards.add(staging.blockShards());
    }
  }

  /** A load of both tiers begins, which {@link #loadEnded} must follow. */
  synchronized void loadBegan() {
    long now = System.nanoTime();
    if (loads == 0 && now - lastLoad > QUIET_NANOS) {
      restsUntil = Math.max(restsUntil, now + BURST_NANOS);
    }
    loads++;
  }

  /** It has ended. */
  synchronized void loadEnded() {
    loads--;
    lastLoad = System.nanoTime();
    notifyAll();
  }

  /** The work of its thread: keeps what waits, until it is closed. */
  void run() {
    try {
      for (BlockIds id = next(); id != null; id = next()) {
        keep(id);
      }
    } catch (InterruptedException e) {
      // It is to end.
      Thread.currentThread().interrupt();
    }
  }

  /** Has its thread end, when it has begun with no more. */
  synchronized void close() {
    closed = true;
    notifyAll();
  }

  private synchronized @Nullable BlockIds next() throws InterruptedException {
    while (!closed) {
      long pause = pause(System.nanoTime());
      if (pause <= 0) {
        moving++;
        return waiting.removeFirst();
      }
      TimeUnit.NANOSECONDS.timedWait(this, pause);
    }
    return null;
  }

  /** How long to leave the next block, unless something begins or ends meanwhile. */
  private long pause(long now) {
    if (waiting.isEmpty() || moving == mostMoving) {
      return Long.MAX_VALUE;
    }
    long untilQuiet = loads > 0 ? Long.MAX_VALUE : lastLoad + QUIET_NANOS - now;
    return moving > 0 ? untilQuiet : Math.min(untilQuiet, restsUntil - now);
  }

  private void keep(BlockIds id) throws InterruptedException {
    if (Tiers.known(upper, id).get(0)) {
      synchronized (this) {
        moving--;
      }
      return;
    }
    long from = System.nanoTime();
    StoreException refusal = lower.refusal();
    if (refusal != null) {
      ended(from, false, refusal);
      return;
    }
    // Does not wait, as no more are moving than it has room for.
    staging.move(id, (isMoved, why) -> ended(from, isMoved, why));
  }

  private synchronized void ended(long from, boolean isMoved, @Nullable RuntimeException why) {
    (isMoved ? metrics.promotedShards : metrics.unpromotedShards).add(staging.blockShards());
    long now = System.nanoTime();
    hasFailed = why != null;
    restsUntil = now + (hasFailed ? AFTER_FAILURE_NANOS : (long) ((now - from) * REST));
    if (hasFailed) {
      metrics.unpromotedShards.add((long) waiting.size() * staging.blockShards());
      waiting.clear();
    }
    moving--;
    notifyAll();
  }
}
