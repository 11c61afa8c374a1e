package ucm.store.cache.pool;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;

/** Answers which blocks are in the pool or in the next stage. */
public final class CacheLookup {

  private static final double NANOS_PER_MS = 1e6;

  private final SlotPool pool;
  private final @Nullable Store next;
  private final boolean nextOnly;
  private final Counter hits;
  private final Counter misses;
  private final Histogram millis;
  private volatile double lastRate;

  /**
   * Looks into a pool and asks the next stage.
   *
   * @param nextOnly leaves the pool out
   */
  public CacheLookup(SlotPool pool, @Nullable Store next, boolean nextOnly, StoreMetrics metrics) {
    this.pool = pool;
    this.next = next;
    this.nextOnly = nextOnly;
    // Under the names of the original.
    hits = metrics.counter("cache_lookup_hit_blocks", "Blocks looked up and found in the pool.");
    misses =
        metrics.counter(
            "cache_lookup_miss_blocks", "Blocks looked up that the pool did not answer for.");
    millis =
        metrics.histogram(
            "cache_lookup_duration_ms", "Time a look-up spent here, not in the next stage (ms).");
    metrics.gauge(
        "cache_lookup_hit_rate",
        "Share of the blocks of the last look-up that the pool had.",
        () -> lastRate);
  }

  /** See {@link Store#lookup}. */
  public BitSet lookup(BlockIds ids) {
    long start = System.nanoTime();
    int size = ids.size();
    BitSet found = new BitSet(size);
    found.set(0, size);
    BitSet absent = nextOnly ? (BitSet) found.clone() : pool.absent(ids);
    found.andNot(absent);
    int absentCount = absent.cardinality();
    looked(size - absentCount, absentCount, System.nanoTime() - start);
    if (absentCount == 0 || next == null) {
      return found;
    }
    BitSet inNext = next.lookup(absentCount == size ? ids : ids.select(0, absent));
    int asked = 0;
    for (int i = absent.nextSetBit(0); i >= 0; i = absent.nextSetBit(i + 1)) {
      found.set(i, inNext.get(asked++));
    }
    return found;
  }

  /** See {@link Store#lookupPrefix}. */
  public int lookupPrefix(BlockIds ids) {
    long start = System.nanoTime();
    int size = ids.size();
    int at = 0;
    int found = 0;
    long nextNanos = 0;
    while (at < size) {
      int from = at;
      while (at < size && inPool(ids, at)) {
        at++;
      }
      found += at - from;
      if (at == size || next == null) {
        break;
      }
      long asked = System.nanoTime();
      int run = next.lookupPrefix(at == 0 ? ids : ids.slice(at, size)) + 1;
      nextNanos += System.nanoTime() - asked;
      at += run;
      if (run == 0 || at == size || !inPool(ids, at)) {
        break;
      }
    }
    looked(found, size - found, System.nanoTime() - start - nextNanos);
    return at - 1;
  }

  /** A look-up has ended. */
  private void looked(int found, int absent, long nanos) {
    hits.add(found);
    misses.add(absent);
    millis.record(nanos / NANOS_PER_MS);
    if (found + absent > 0) {
      lastRate = (double) found / (found + absent);
    }
  }

  private boolean inPool(BlockIds ids, int i) {
    return !nextOnly && pool.isComplete(ids, i);
  }
}
