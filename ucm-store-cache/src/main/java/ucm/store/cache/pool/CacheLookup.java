package ucm.store.cache.pool;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;

/** Answers which blocks are in the pool or behind it; asks the stage behind for those that are not here. */
public final class CacheLookup {

  private final SlotDirectory pool;
  private final @Nullable Store backend;
  private final boolean behindOnly;
  private final LookupMetrics metrics;

  /**
   * Looks into a pool and behind it.
   *
   * @param behindOnly leaves the pool out
   */
  public CacheLookup(
      SlotDirectory pool, @Nullable Store backend, boolean behindOnly, LookupMetrics metrics) {
    this.pool = pool;
    this.backend = backend;
    this.behindOnly = behindOnly;
    this.metrics = metrics;
  }

  /** See {@link Store#lookup}. */
  public BitSet lookup(BlockIds ids) {
    long start = System.nanoTime();
    int size = ids.size();
    BitSet found = new BitSet(size);
    int absent = 0;
    for (int i = 0; i < size; i++) {
      if (inPool(ids, i)) {
        found.set(i);
      } else {
        absent++;
      }
    }
    metrics.looked(size - absent, absent, System.nanoTime() - start);
    if (absent == 0 || backend == null) {
      return found;
    }
    if (absent == size) {
      return backend.lookup(ids);
    }
    long[] words = new long[2 * absent];
    int next = 0;
    for (int i = found.nextClearBit(0); i < size; i = found.nextClearBit(i + 1)) {
      words[next++] = ids.high(i);
      words[next++] = ids.low(i);
    }
    BitSet behind = backend.lookup(BlockIds.wrap(words));
    int asked = 0;
    for (int i = found.nextClearBit(0); i < size; i = found.nextClearBit(i + 1)) {
      if (behind.get(asked++)) {
        found.set(i);
      }
    }
    return found;
  }

  /** See {@link Store#lookupPrefix}. */
  public int lookupPrefix(BlockIds ids) {
    long start = System.nanoTime();
    int size = ids.size();
    int next = 0;
    int hits = 0;
    long behindNanos = 0;
    while (next < size) {
      int from = next;
      while (next < size && inPool(ids, next)) {
        next++;
      }
      hits += next - from;
      if (next == size || backend == null) {
        break;
      }
      long asked = System.nanoTime();
      int run = backend.lookupPrefix(next == 0 ? ids : ids.slice(next, size)) + 1;
      behindNanos += System.nanoTime() - asked;
      next += run;
      if (run == 0 || next == size || !inPool(ids, next)) {
        break;
      }
    }
    metrics.looked(hits, size - hits, System.nanoTime() - start - behindNanos);
    return next - 1;
  }

  private boolean inPool(BlockIds ids, int i) {
    return !behindOnly && pool.isComplete(ids, i);
  }
}
