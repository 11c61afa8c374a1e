package ucm.store.cache.pool;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;

/** Answers which blocks are in the pool or in the next stage. */
public final class CacheLookup {

  private final SlotPool pool;
  private final @Nullable Store next;
  private final boolean nextOnly;
  private final LookupMetrics metrics;

  /**
   * Looks into a pool and asks the next stage.
   *
   * @param nextOnly leaves the pool out
   */
  public CacheLookup(SlotPool pool, @Nullable Store next, boolean nextOnly, LookupMetrics metrics) {
    this.pool = pool;
    this.next = next;
    this.nextOnly = nextOnly;
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
    if (absent == 0 || next == null) {
      return found;
    }
    if (absent == size) {
      return next.lookup(ids);
    }
    long[] words = new long[2 * absent];
    int at = 0;
    for (int i = found.nextClearBit(0); i < size; i = found.nextClearBit(i + 1)) {
      words[at++] = ids.high(i);
      words[at++] = ids.low(i);
    }
    BitSet inNext = next.lookup(BlockIds.wrap(words));
    int asked = 0;
    for (int i = found.nextClearBit(0); i < size; i = found.nextClearBit(i + 1)) {
      if (inNext.get(asked++)) {
        found.set(i);
      }
    }
    return found;
  }

  /** See {@link Store#lookupPrefix}. */
  public int lookupPrefix(BlockIds ids) {
    long start = System.nanoTime();
    int size = ids.size();
    int at = 0;
    int hits = 0;
    long nextNanos = 0;
    while (at < size) {
      int from = at;
      while (at < size && inPool(ids, at)) {
        at++;
      }
      hits += at - from;
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
    metrics.looked(hits, size - hits, System.nanoTime() - start - nextNanos);
    return at - 1;
  }

  private boolean inPool(BlockIds ids, int i) {
    return !nextOnly && pool.isComplete(ids, i);
  }
}
