package ucm.lite.policy;

import java.util.BitSet;
import ucm.platform.eviction.EvictionOrder;

/** A cache that evicts in one of the orders that {@code Cache} evicts in. */
final class OrderedCache extends BlockCache {
  private final EvictionOrder order;
  private final boolean tellsUses;
  private final BitSet inside = new BitSet();
  private int size;

  /** An empty cache; without {@code tellsUses} the order is told of insertions only. */
  OrderedCache(int capacity, EvictionOrder order, boolean tellsUses) {
    super(capacity);
    this.order = order;
    this.tellsUses = tellsUses;
  }

  @Override
  public boolean contains(int block) {
    return inside.get(block);
  }

  @Override
  public int touch(int block) {
    if (inside.get(block)) {
      if (tellsUses) {
        order.touch(block);
      }
      return NOTHING;
    }
    int evicted = NOTHING;
    if (size < capacity) {
      size++;
    } else {
      evicted = order.evict(any -> true);
      inside.clear(evicted);
    }
    inside.set(block);
    order.add(block, block);
    return evicted;
  }
}
