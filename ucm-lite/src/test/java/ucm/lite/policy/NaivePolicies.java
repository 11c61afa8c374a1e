package ucm.lite.policy;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceRequest;

/** What the fast policies are held to: written from the papers with plain collections. */
public abstract class NaivePolicies {
  final int capacity;

  NaivePolicies(int capacity) {
    this.capacity = capacity;
  }

  abstract boolean contains(int block);

  abstract void touch(int block);

  void touchAll(List<Integer> blocks) {
    blocks.forEach(this::touch);
  }

  static NaivePolicies of(CachePolicy policy, int capacity) {
    return switch (policy) {
      case LFU -> new Lfu(capacity);
      case S3_FIFO -> new S3Fifo(capacity);
      case ARC -> new Arc(capacity);
      case PREFIX_LRU -> new PrefixLru(capacity);
      default -> throw new IllegalArgumentException(policy.key());
    };
  }

  final CacheHits run(List<TraceRequest> trace, TouchOrder order) {
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
        touchAll(order == TouchOrder.LEAF_LAST ? blocks : blocks.reversed());
      }
    }
    return new CacheHits(capacity, hitBlocks, hitTokens);
  }

  public static List<Integer> blocks(TraceRequest request) {
    List<Integer> blocks = new ArrayList<>();
    for (int i = 0; i < request.blockCount(); i++) {
      blocks.add((int) request.blockIdLow(i));
    }
    return blocks;
  }

  private static final class Lfu extends NaivePolicies {
    private final Map<Integer, Long> counts = new HashMap<>();
    private final Map<Integer, Long> times = new HashMap<>();
    private long now;

    Lfu(int capacity) {
      super(capacity);
    }

    @Override
    boolean contains(int block) {
      return counts.containsKey(block);
    }

    @Override
    void touch(int block) {
      if (!counts.containsKey(block) && counts.size() == capacity) {
        Integer victim =
            counts.keySet().stream()
                .min(Comparator.<Integer>comparingLong(counts::get).thenComparing(times::get))
                .orElseThrow();
        counts.remove(victim);
      }
      counts.merge(block, 1L, Long::sum);
      times.put(block, now++);
    }
  }

  private static final class S3Fifo extends NaivePolicies {
    private final List<Integer> small = new ArrayList<>();
    private final List<Integer> main = new ArrayList<>();
    private final List<Integer> ghost = new ArrayList<>();
    private final Map<Integer, Integer> frequency = new HashMap<>();

    S3Fifo(int capacity) {
      super(capacity);
    }

    private int smallSize() {
      return Math.max(1, capacity / 10);
    }

    @Override
    boolean contains(int block) {
      return small.contains(block) || main.contains(block);
    }

    @Override
    void touch(int block) {
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

  private static final class Arc extends NaivePolicies {
    private final List<Integer> t1 = new ArrayList<>();
    private final List<Integer> t2 = new ArrayList<>();
    private final List<Integer> b1 = new ArrayList<>();
    private final List<Integer> b2 = new ArrayList<>();
    private int p;

    Arc(int capacity) {
      super(capacity);
    }

    @Override
    boolean contains(int block) {
      return t1.contains(block) || t2.contains(block);
    }

    @Override
    void touch(int block) {
      Integer x = block;
      if (contains(block)) {
        t1.remove(/* element */ x);
        t2.remove(/* element */ x);
      } else if (b1.contains(x)) {
        p = Math.min(capacity, p + Math.max(b2.size() / b1.size(), 1));
        replace(x);
        b1.remove(/* element */ x);
      } else if (b2.contains(x)) {
        p = Math.max(0, p - Math.max(b1.size() / b2.size(), 1));
        replace(x);
        b2.remove(/* element */ x);
      } else {
        insert(x);
        return;
      }
      t2.add(x);
    }

    private void insert(Integer x) {
      int all = t1.size() + t2.size() + b1.size() + b2.size();
      if (t1.size() + b1.size() == capacity) {
        if (t1.size() < capacity) {
          b1.removeFirst();
          replace(x);
        } else {
          t1.removeFirst();
        }
      } else if (all >= capacity) {
        if (all == 2 * capacity) {
          b2.removeFirst();
        }
        replace(x);
      }
      t1.add(x);
    }

    private void replace(Integer x) {
      if (t1.size() + t2.size() < capacity) {
        return;
      }
      boolean first = t1.size() > p || (b2.contains(x) && t1.size() == p);
      if (!t1.isEmpty() && (first || t2.isEmpty())) {
        b1.add(t1.removeFirst());
      } else {
        b2.add(t2.removeFirst());
      }
    }
  }

  private static final class PrefixLru extends NaivePolicies {
    /** Block -> the block it continues; in the order of the last touch. */
    private final Map<Integer, Integer> inside = new LinkedHashMap<>();

    PrefixLru(int capacity) {
      super(capacity);
    }

    @Override
    boolean contains(int block) {
      return inside.containsKey(block);
    }

    @Override
    void touch(int block) {
      throw new UnsupportedOperationException();
    }

    @Override
    void touchAll(List<Integer> blocks) {
      Set<Integer> mine = new HashSet<>();
      Integer before = -1;
      for (Integer block : blocks) {
        mine.add(block);
        if (!contains(block) && inside.size() == capacity) {
          Set<Integer> parents = new HashSet<>(inside.values());
          Integer victim =
              inside.keySet().stream()
                  .filter(b -> !parents.contains(b) && !mine.contains(b))
                  .findFirst()
                  .orElse(null);
          if (victim == null) {
            return;
          }
          inside.remove(victim);
        }
        Integer parent = inside.containsKey(block) ? inside.remove(block) : before;
        inside.put(block, parent);
        before = block;
      }
    }
  }
}
