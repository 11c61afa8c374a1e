package ucm.lite.policy;

import ucm.lite.curve.CacheHits;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.PrefixModel;
import ucm.lite.record.TouchOrder;

/** One policy at one capacity over a whole trace. */
final class PolicyRun implements PrefixModel {
  private final BlockCache cache;
  private final TouchOrder order;
  private long hitBlocks;
  private long hitTokens;

  PolicyRun(BlockCache cache, TouchOrder order) {
    this.cache = cache;
    this.order = order;
  }

  @Override
  public void accept(NumberedRequest request) {
    int run = 0;
    while (run < request.known && cache.contains(request.blocks[run])) {
      run++;
    }
    hitBlocks += run;
    hitTokens += request.prefixTokens(run);
    if (cache.capacity > 0) {
      cache.touchAll(request, order);
    }
  }

  CacheHits hits(long capacity) {
    return new CacheHits(capacity, hitBlocks, hitTokens);
  }
}
