package ucm.lite;

import java.util.Arrays;

/**
 * FIFO caches of chosen capacities, all in one pass: what is touched while inside keeps its place,
 * and what was inserted first is evicted first.
 */
final class FifoSimulation implements PrefixModel {
  private final TouchOrder order;
  private final FifoCache[] caches;
  private final long[] hitBlocks;
  private final long[] hitTokens;

  FifoSimulation(TouchOrder order, long[] capacities) {
    this.order = order;
    this.caches = new FifoCache[capacities.length];
    Arrays.setAll(caches, c -> new FifoCache(capacities[c]));
    this.hitBlocks = new long[capacities.length];
    this.hitTokens = new long[capacities.length];
  }

  @Override
  public void accept(TraceRequest request, int[] blocks, int count, int known, int distinct) {
    for (int c = 0; c < caches.length; c++) {
      FifoCache cache = caches[c];
      cache.ensureBlocks(distinct);
      int run = 0;
      while (run < known && cache.contains(blocks[run])) {
        run++;
      }
      hitBlocks[c] += run;
      hitTokens[c] += request.prefixTokens(run);
      touchAll(cache, blocks, count);
    }
  }

  private void touchAll(FifoCache cache, int[] blocks, int count) {
    if (order == TouchOrder.LEAF_LAST) {
      for (int i = 0; i < count; i++) {
        cache.touch(blocks[i]);
      }
    } else {
      for (int i = count - 1; i >= 0; i--) {
        cache.touch(blocks[i]);
      }
    }
  }

  CacheHits[] results() {
    CacheHits[] results = new CacheHits[caches.length];
    Arrays.setAll(results, c -> new CacheHits(caches[c].capacity(), hitBlocks[c], hitTokens[c]));
    return results;
  }
}
