package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreClosedException;

/**
 * Waits until what was dumped is durable: first for the writes to the next stage, then for that stage.
 * Where several stores share the pool, what this one was to dump may be on its way through another one, so all
 * of them are waited for.
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
    FlushResult lower = FlushResult.clean();
    boolean isTold = false;
    try {
      long pending = awaitWrites(cache, deadline);
      lower = flushNext(cache, deadline);
      for (CacheRuntime other : cache.buffer.members()) {
        if (other != cache) {
          pending += awaitWrites(other, deadline);
          lower = merge(lower, flushNext(other, deadline));
        }
      }
      isTold = true;
      return merge(cache.ledger.take(pending), lower);
    } finally {
      if (!isTold) {
        // Interrupted, say: the next flush tells what this one was told.
        cache.ledger.takeBack(lower);
      }
    }
  }

  /** Waits for a store's writes, none of which is held back meanwhile; says how many blocks are pending. */
  private static long awaitWrites(CacheRuntime store, long deadline) throws InterruptedException {
    store.writes.hurry(1);
    try {
      return store.ledger.await(deadline);
    } finally {
      store.writes.hurry(-1);
    }
  }

  /** Flushes a store's next stage, and drops what that took over and failed to keep. */
  FlushResult flushNext(CacheRuntime store, long deadline) throws InterruptedException {
    Store next = store.next;
    if (next == null) {
      return FlushResult.clean();
    }
    FlushResult lower;
    try {
      lower = next.flush(Duration.ofNanos(Math.max(0, deadline - clock.getAsLong())));
    } catch (StoreClosedException e) {
      if (store != cache) {
        // It left meanwhile, and has flushed by itself.
        return FlushResult.clean();
      }
      throw e;
    }
    BlockIds lost = lower.failedBlocks();
    for (int i = 0; i < lost.size(); i++) {
      cache.pool.drop(lost.high(i), lost.low(i));
    }
    for (CacheRuntime other : cache.buffer.members()) {
      if (other != cache) {
        other.ledger.takeBack(lower);
      }
    }
    return lower;
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
