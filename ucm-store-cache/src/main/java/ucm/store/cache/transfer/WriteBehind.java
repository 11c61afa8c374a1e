package ucm.store.cache.transfer;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Writes dumped shards to the next stage in the background, some transfers at a time.
 *
 * <p>While an engine waits for a task, or reads what is lent to it, the writes are held back, and for a moment
 * after that: both want the same processors, memory bandwidth and disks. They go after a second in any case,
 * and at once when a task wants slots, or a caller waits for them, by a flush or until their dump has settled.
 *
 * <p>What waits here is bounded by the slots of the pool: each shard keeps its slot.
 */
final class WriteBehind {

  /** Nothing to wait for: an event will wake the dispatcher. */
  static final long FOREVER = Long.MAX_VALUE;

  // Transfers, and bytes, that the next stage is given before it is done with others.
  private static final int MAX_UNDER_WAY = 32;
  private static final long MAX_BYTES = 128L << 20;
  private static final long MAX_HOLD_NANOS = TimeUnit.SECONDS.toNanos(1);
  // What an engine asks next comes soon.
  private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
  private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final CacheRuntime cache;
  private final AtomicInteger busy = new AtomicInteger();
  private volatile long quietSinceNanos;
  // Guarded by this.
  private final ArrayDeque<NextWrite> waiting = new ArrayDeque<>();
  private int underWay;
  private long bytesUnderWay;
  private int hurried;
  private long refusedNanos;
  private boolean refused;

  WriteBehind(CacheRuntime cache) {
    this.cache = cache;
  }

  /** So many more, or fewer, tasks and blocks that are lent are under way for the engine. */
  void busy(int change) {
    if (busy.addAndGet(change) == 0) {
      quietSinceNanos = System.nanoTime();
    }
  }

  void offer(NextWrite write) {
    boolean first;
    synchronized (this) {
      first = waiting.isEmpty();
      waiting.add(write);
    }
    if (first) {
      // So that the clock is looked at while it is held back.
      cache.dispatcher.wake();
    }
  }

  /** The next stage is done with a write of so many bytes. */
  void ended(long bytes) {
    boolean more;
    synchronized (this) {
      underWay--;
      bytesUnderWay -= bytes;
      more = !waiting.isEmpty();
    }
    if (more) {
      cache.dispatcher.wake();
    }
  }

  /** A caller begins (1) or ceases (-1) to wait for the writes, so that none is held back. */
  void hurry(int change) {
    synchronized (this) {
      hurried += change;
    }
    cache.dispatcher.wake();
  }

  /**
   * Hands to the next stage what can go now; called by the dispatcher.
   *
   * @return in how many nanoseconds to call again at the latest
   */
  long send() {
    while (true) {
      NextWrite next;
      synchronized (this) {
        long hold = holdNanos();
        if (hold > 0) {
          // No event tells when the engine waits no longer: its tasks go first.
          return hold == FOREVER ? FOREVER : Math.min(hold, QUIET_NANOS);
        }
        next = waiting.remove();
        underWay++;
        bytesUnderWay += next.byteSize();
      }
      if (!next.submit()) {
        synchronized (this) {
          waiting.addFirst(next);
          underWay--;
          bytesUnderWay -= next.byteSize();
          refused = true;
          refusedNanos = System.nanoTime();
        }
      }
    }
  }

  private long holdNanos() {
    if (waiting.isEmpty() || underWay >= MAX_UNDER_WAY || bytesUnderWay >= MAX_BYTES) {
      return FOREVER;
    }
    long now = System.nanoTime();
    if (refused) {
      long left = RETRY_NANOS - (now - refusedNanos);
      if (left > 0) {
        return left;
      }
      refused = false;
    }
    if (hurried > 0 || cache.pool.isWanted()) {
      return 0;
    }
    long hold = MAX_HOLD_NANOS - (now - waiting.element().offeredNanos);
    if (busy.get() == 0) {
      hold = Math.min(hold, QUIET_NANOS - (now - quietSinceNanos));
    }
    return Math.max(0, hold);
  }
}
