package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;

/**
 * Waits until what was dumped is durable: first for the writes to the next stage, then for that stage,
 * then for the blocks that other workers bring there.
 */
final class CacheFlush {

  private final CacheRuntime cache;
  private final LongSupplier clock;

  CacheFlush(CacheRuntime cache, LongSupplier clock) {
    this.cache = cache;
    this.clock = clock;
  }

  /** See {@link Store#flush}. */
  FlushResult await(Duration timeout) throws InterruptedException {
    long deadline = clock.getAsLong() + TimeUnit.NANOSECONDS.convert(timeout);
    FlushResult own;
    cache.writes.hurry(1);
    try {
      own = cache.ledger.await(deadline);
    } finally {
      cache.writes.hurry(-1);
    }
    Store next = cache.next;
    if (next == null) {
      return own;
    }
    FlushResult known = own;
    boolean isTold = false;
    try {
      long left = Math.max(0, deadline - clock.getAsLong());
      FlushResult lower = next.flush(Duration.ofNanos(left));
      known = merge(own, lower);
      BlockIds lost = lower.failedBlocks();
      for (int i = 0; i < lost.size(); i++) {
        // It took them over, and failed afterwards.
        cache.pool.drop(lost.high(i), lost.low(i));
      }
      FlushResult all = merge(known, cache.peerWrites.await(next, deadline));
      isTold = true;
      return all;
    } finally {
      if (!isTold) {
        // Interrupted, say: the next flush tells what this one was told.
        cache.ledger.takeBack(known);
      }
    }
  }

  static FlushResult merge(FlushResult own, FlushResult lower) {
    SequencedSet<BlockIds> named = new LinkedHashSet<>();
    for (BlockIds ids : new BlockIds[] {own.failedBlocks(), lower.failedBlocks()}) {
      for (int i = 0; i < ids.size(); i++) {
        named.add(BlockIds.of(ids.high(i), ids.low(i)));
      }
    }
    long[] words = new long[2 * named.size()];
    int next = 0;
    for (BlockIds id : named) {
      words[next++] = id.high(0);
      words[next++] = id.low(0);
    }
    // A block that the next stage refused has failed in both: one name, one failure. Those that
    // neither names are taken for the same as well.
    long counted = Math.max(own.failedCount(), lower.failedCount());
    return new FlushResult(
        own.pendingBlocks() + lower.pendingBlocks(),
        BlockIds.wrap(words),
        Math.max(named.size(), counted),
        own.cause() != null ? own.cause() : lower.cause());
  }
}
