package ucm.lite.trace;

import java.util.ArrayList;
import java.util.List;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.TouchOrder;

/**
 * What the fast statistics are held to: one cache of one capacity, as slow and plain as can be. The
 * list is in the order of eviction, first out first.
 */
public final class NaiveCache {
  private final boolean lru;
  private final TouchOrder order;
  private final long capacity;
  private final List<String> blocks = new ArrayList<>();
  private long hitBlocks;
  private long hitTokens;

  private NaiveCache(boolean lru, TouchOrder order, long capacity) {
    this.lru = lru;
    this.order = order;
    this.capacity = capacity;
  }

  public static CacheHits lru(TouchOrder order, long capacity, List<TraceRequest> trace) {
    return new NaiveCache(/* lru= */ true, order, capacity).run(trace);
  }

  public static CacheHits fifo(TouchOrder order, long capacity, List<TraceRequest> trace) {
    return new NaiveCache(/* lru= */ false, order, capacity).run(trace);
  }

  private CacheHits run(List<TraceRequest> trace) {
    for (TraceRequest request : trace) {
      List<String> ids = ids(request);
      int run = 0;
      while (run < ids.size() && blocks.contains(ids.get(run))) {
        run++;
      }
      hitBlocks += run;
      hitTokens += Math.min((long) request.blockTokens() * run, request.inputTokens());
      for (String id : order == TouchOrder.LEAF_LAST ? ids : ids.reversed()) {
        touch(id);
      }
    }
    return new CacheHits(capacity, hitBlocks, hitTokens);
  }

  private void touch(String id) {
    boolean present = blocks.contains(id);
    if (present && !lru) {
      return;
    }
    blocks.remove(id);
    blocks.add(id);
    if (blocks.size() > capacity) {
      blocks.removeFirst();
    }
  }

  private static List<String> ids(TraceRequest request) {
    List<String> ids = new ArrayList<>();
    for (int i = 0; i < request.blockCount(); i++) {
      ids.add(request.ids().high(i) + ":" + request.ids().low(i));
    }
    return ids;
  }
}
