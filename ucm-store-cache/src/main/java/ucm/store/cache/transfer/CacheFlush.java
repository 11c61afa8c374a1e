package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreClosedException;

/**
 * Waits until what was dumped is durable: first for the writes to the next stage, then for that stage.
 * Where several stores share the pool, what this one was to dump may be on its way through another one, so all
 * of them are waited for. Failures of the next stages are noted with those of the store, whose next flush tells
 * them when this one is interrupted.
 */
final class CacheFlush {

  private final CacheRuntime cache;

  CacheFlush(CacheRuntime cache) {
    this.cache = cache;
  }

  /** See {@link Store#flush}. */
  FlushResult await(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.NANOSECONDS.convert(timeout);
    long pending = awaitWrites(cache, end);
    FlushResult lower = flushNext(cache, end);
    pending += lower.pendingBlocks();
    long counted = lower.failedCount();
    for (CacheRuntime other : cache.buffer.members()) {
      if (other != cache) {
        pending += awaitWrites(other, end);
        lower = flushNext(other, end);
        pending += lower.pendingBlocks();
        counted = Math.max(counted, lower.failedCount());
      }
    }
    FlushResult own = cache.dumps.takeFailures();
    // A block that the next stage refused has failed in both: one name, one failure. Those that
    // neither names are taken for the same as well.
    return new FlushResult(
        pending, own.failedBlocks(), Math.max(own.failedCount(), counted), own.cause());
  }

  /** Waits for a store's writes, none of which is held back meanwhile; says how many blocks are pending. */
  private static int awaitWrites(CacheRuntime store, long end) throws InterruptedException {
    store.writes.hurry(1);
    try {
      return store.dumps.await(left(end)).size();
    } finally {
      store.writes.hurry(-1);
    }
  }

  /**
   * Flushes a store's next stage, and drops and notes what that took over and failed to keep.
   */
  FlushResult flushNext(CacheRuntime store, long end) throws InterruptedException {
    Store next = store.next;
    if (next == null) {
      return FlushResult.clean();
    }
    FlushResult lower;
    try {
      lower = next.flush(left(end));
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
      cache.dumps.failed(lost.high(i), lost.low(i), lower.cause());
    }
    for (CacheRuntime other : cache.buffer.members()) {
      if (other != cache) {
        other.dumps.failed(lower);
      }
    }
    return lower;
  }

  private static Duration left(long end) {
    return Duration.ofNanos(Math.max(0, end - System.nanoTime()));
  }
}
