package ucm.lite.policy;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;

/** What the fast S3-FIFO is held to: written from the paper with plain collections. */
public final class NaiveS3Fifo {

  private final int capacity;
  private final List<Integer> small = new ArrayList<>();
  private final List<Integer> main = new ArrayList<>();
  private final List<Integer> ghost = new ArrayList<>();
  private final Map<Integer, Integer> frequency = new HashMap<>();

  NaiveS3Fifo(int capacity) {
    this.capacity = capacity;
  }

  CacheHits run(List<TraceRequest> trace, TouchOrder order) {
    long hitBlocks = 0;
    long hitTokens = 0;
    for (TraceRequest request : trace) {
      List<Integer> blocks = blocks(request);
      int run = 0;
      while (run < blocks.size() && contains(blocks.get(run))) {
        run++;
      }
      hitBlocks += run;
      hitTokens += request.prefixTokens(run);
      if (capacity > 0) {
        (order == TouchOrder.LEAF_LAST ? blocks : blocks.reversed()).forEach(this::touch);
      }
    }
    return new CacheHits(capacity, hitBlocks, hitTokens);
  }

  public static List<Integer> blocks(TraceRequest request) {
    List<Integer> blocks = new ArrayList<>();
    for (int i = 0; i < request.blockCount(); i++) {
      blocks.add((int) request.ids().low(i));
    }
    return blocks;
  }

  private int smallSize() {
    return Math.max(1, capacity / 10);
  }

  private boolean contains(int block) {
    return small.contains(block) || main.contains(block);
  }

  private void touch(int block) {
    if (contains(block)) {
      frequency.merge(block, 1, (a, b) -> Math.min(3, a + b));
      return;
    }
    while (small.size() + main.size() >= capacity) {
      if (small.size() >= smallSize() || main.isEmpty()) {
        evictSmall();
      } else {
        evictMain();
      }
    }
    if (ghost.remove(/* element */ (Integer) block)) {
      main.add(block);
    } else {
      small.add(block);
    }
    frequency.put(block, 0);
  }

  private void evictSmall() {
    Integer block = small.removeFirst();
    if (frequency.get(block) > 1) {
      frequency.put(block, 0);
      main.add(block);
      return;
    }
    ghost.add(block);
    if (ghost.size() > capacity - smallSize()) {
      ghost.removeFirst();
    }
  }

  private void evictMain() {
    Integer block = main.removeFirst();
    if (frequency.get(block) > 0) {
      frequency.merge(block, -1, Integer::sum);
      main.add(block);
    }
  }
}
