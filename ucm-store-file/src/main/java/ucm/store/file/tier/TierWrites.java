package ucm.store.file.tier;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.platform.fault.RecentFaults;
import ucm.store.file.block.BlockWriter.Failures;

/**
 * Writes blocks of the upper tier to the lower one in the background, as many at a time as there is staging
 * memory for.
 *
 * <p>A block that could not be written stays in the upper tier, is told by {@code flush}, and tried again when
 * the lower tier works again. Nothing about it is kept beyond this process: the collector asks the lower tier
 * before it removes a block. Thread-safe.
 */
final class TierWrites {

  private static final Logger LOG = LoggerFactory.getLogger(TierWrites.class);
  // More are left to the collector.
  private static final int MOST_OPEN = 1 << 20;
  private static final int MOST_UNWRITTEN = 1 << 16;
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long RETRY_UNWRITTEN_NANOS = TimeUnit.SECONDS.toNanos(5);

  private final Store upper;
  private final LowerTier lower;
  private final TierMoves staging;
  private final TierMetrics metrics;
  private final Failures failures;
  private final Consumer<FlushResult> untold;
  private final RecentFaults recentFaults = new RecentFaults(System::nanoTime);
  // Guarded by this, as is what follows. Those offered and not ended, with the numbers of their
  // offers.
  private final SequencedMap<BlockIds, Long> open = new LinkedHashMap<>();
  private final ArrayDeque<BlockIds> waiting = new ArrayDeque<>();
  private final SequencedSet<BlockIds> unwritten = new LinkedHashSet<>();
  private long lastOffer;
  private long retryAt;
  private boolean isFull;
  private boolean closed;
  private @Nullable Thread thread;

  /** Has nothing to write; {@code untold} takes what a flush of the lower tier told here in vain. */
  TierWrites(
      Store upper,
      LowerTier lower,
      TierMoves staging,
      TierMetrics metrics,
      Failures failures,
      Consumer<FlushResult> untold) {
    this.upper = upper;
    this.lower = lower;
    this.staging = staging;
    this.metrics = metrics;
    this.failures = failures;
    this.untold = untold;
    metrics.registry.gauge(
        "tier_write_pending_blocks", "Blocks on their way to the next stage", this::pending);
    metrics.registry.gauge(
        "tier_unwritten_blocks",
        "Blocks that could not be written to the next stage and wait for it",
        this::unwritten);
  }

  /** The work of its thread. */
  void run() {
    try {
      for (BlockIds id = next(); id != null; id = next()) {
        StoreException refusal = lower.refusal();
        if (refusal != null || lower.known(id).get(0)) {
          ended(id, refusal);
        } else {
          move(id);
        }
      }
    } catch (InterruptedException e) {
      // Only close interrupts this thread.
      Thread.currentThread().interrupt();
    }
  }

  private void move(BlockIds id) throws InterruptedException {
    try {
      staging.move(id, (isMoved, why) -> moved(id, isMoved, why));
    } catch (InterruptedException e) {
      again(id);
      throw e;
    }
  }

  private void moved(BlockIds id, boolean isMoved, @Nullable RuntimeException why) {
    if (why instanceof QueueFullException) {
      again(id);
      return;
    }
    if (isMoved) {
      metrics.writtenBlocks.increment();
    }
    if (why != null && recentFaults.isNews(RecentFaults.kind(why))) {
      // Nobody may wait for it who could say so.
      LOG.warn(
          "{} could not write a block to the next stage; it stays here, and is tried again: {};"
              + " further ones are counted in tier_write_failed_blocks",
          upper,
          why.getMessage());
    }
    ended(id, why);
  }

  /** Starts its thread, made for {@link #run}. */
  void start(Thread made) {
    synchronized (this) {
      thread = made;
    }
    made.start();
  }

  private synchronized @Nullable BlockIds next() throws InterruptedException {
    retryWhenDue();
    while (!closed && (waiting.isEmpty() || isFull)) {
      if (isFull) {
        // Less when something has ended, and made room.
        TimeUnit.NANOSECONDS.timedWait(this, RETRY_NANOS);
        isFull = false;
      } else {
        long untilRetry = unwritten.isEmpty() ? Long.MAX_VALUE : retryAt - System.nanoTime();
        TimeUnit.NANOSECONDS.timedWait(this, untilRetry);
      }
      retryWhenDue();
    }
    return closed ? null : waiting.remove();
  }

  /** Offers what could not be written, once the lower tier is used again. */
  private synchronized void retryWhenDue() {
    if (unwritten.isEmpty() || retryAt - System.nanoTime() > 0) {
      return;
    }
    if (lower.refusal() != null) {
      retryAt = System.nanoTime() + RETRY_UNWRITTEN_NANOS;
      return;
    }
    List<BlockIds> again = List.copyOf(unwritten);
    unwritten.clear();
    again.forEach(this::offer);
  }

  /** Takes blocks that the upper tier has; returns the number of the last offer, for {@link #await}. */
  synchronized long offer(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      BlockIds id = BlockIds.of(ids.high(i), ids.low(i));
      if (open.containsKey(id) || closed) {
        continue;
      }
      if (open.size() == MOST_OPEN) {
        keepUnwritten(id);
      } else {
        open.put(id, ++lastOffer);
        waiting.add(id);
      }
    }
    notifyAll();
    return lastOffer;
  }

  /** The number of the last offer. */
  synchronized long lastOffer() {
    return lastOffer;
  }

  /** Forgets blocks that were removed; one on its way may still arrive. */
  synchronized void forget(BlockIds ids) {
    for (int i = 0; i < ids.size(); i++) {
      BlockIds id = ids.slice(i, i + 1);
      unwritten.remove(id);
      if (open.containsKey(id) && waiting.remove(id)) {
        open.remove(id);
      }
    }
    notifyAll();
  }

  /**
   * Waits until the blocks up to an offer have been written, or could not be; returns how many have not.
   */
  synchronized long await(long offer, long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    long left = nanos;
    while (!closed && left > 0 && !open.isEmpty() && open.firstEntry().getValue() <= offer) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
      left = end - System.nanoTime();
    }
    return open.values().stream().filter(number -> number <= offer).count();
  }

  /** As {@link #await}, and flushes the lower tier; returns also how many of its blocks are pending. */
  long flush(long offer, long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    long onTheWay = await(offer, nanos);
    FlushResult below = lower.flush(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
    if (below.failedCount() > 0) {
      untold.accept(below);
    }
    return onTheWay + below.pendingBlocks();
  }

  /**
   * Says which blocks may be removed from the upper tier: those that the lower one has. What it has not is
   * written to it first, within some time. There is nothing to remember, so this holds after a restart, and
   * whichever process wrote the block.
   */
  BitSet mayGo(BlockIds ids, long nanos) {
    BitSet there = lower.lookup(ids);
    if (there.cardinality() < ids.size() && lower.refusal() == null && !isClosed()) {
      Tiers.addMore(ids, there, missing -> lookupWritten(missing, nanos));
    }
    metrics.keptBlocks.add(ids.size() - there.cardinality());
    return there;
  }

  private BitSet lookupWritten(BlockIds missing, long nanos) {
    try {
      var _ = flush(offer(missing), nanos);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return lower.lookup(missing);
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  /** Takes no more, and leaves what it has not begun with to the collector of a later process. */
  synchronized void close(long nanos) {
    long end = System.nanoTime() + nanos;
    closed = true;
    waiting.forEach(open::remove);
    int left = waiting.size() + unwritten.size();
    if (left > 0) {
      LOG.warn(
          "{} closes with {} blocks that the next stage does not have; they stay here, and are"
              + " written to it before they are removed",
          upper,
          left);
    }
    if (thread != null) {
      thread.interrupt();
    }
    notifyAll();
    try {
      for (long time = nanos; !open.isEmpty() && time > 0; time = end - System.nanoTime()) {
        TimeUnit.NANOSECONDS.timedWait(this, time);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized int pending() {
    return open.size();
  }

  private synchronized int unwritten() {
    return unwritten.size();
  }

  private void keepUnwritten(BlockIds id) {
    if (unwritten.size() < MOST_UNWRITTEN) {
      unwritten.add(id);
      retryAt = System.nanoTime() + RETRY_UNWRITTEN_NANOS;
    }
  }

  /** A block was written, or is not to be; or it could not be, and why. */
  private void ended(BlockIds id, @Nullable Throwable why) {
    if (why != null) {
      metrics.writeFailedBlocks.increment();
      // Before a flush that waits for the block goes on.
      failures.failed(id.high(0), id.low(0), why);
    }
    synchronized (this) {
      open.remove(id);
      if (why != null) {
        keepUnwritten(id);
      }
      notifyAll();
    }
  }

  /** A stage has enough to do: the block waits again. */
  private synchronized void again(BlockIds id) {
    isFull = true;
    if (closed) {
      open.remove(id);
    } else {
      waiting.addFirst(id);
    }
    notifyAll();
  }
}
