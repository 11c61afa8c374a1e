package ucm.lite.policy;

import java.util.BitSet;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.TouchOrder;
import ucm.platform.eviction.EvictionOrder;

/**
 * A cache of blocks that evicts in one of the orders that {@code Cache} evicts in; blocks are small
 * numbers and the state lies in arrays, so that no reference allocates anything.
 */
public final class BlockCache {
  /** What {@link #touch} returns when nothing was evicted. */
  public static final int NOTHING = -1;

  public final int capacity;

  private final EvictionOrder order;
  private final boolean tellsUses;
  private final BitSet inside = new BitSet();
  private int size;

  /** An empty cache; without {@code tellsUses} the order is told of insertions only. */
  BlockCache(int capacity, EvictionOrder order, boolean tellsUses) {
    this.capacity = capacity;
    this.order = order;
    this.tellsUses = tellsUses;
  }

  public boolean contains(int block) {
    return inside.get(block);
  }

  /**
   * Notes a reference to a block, and inserts it when it is absent; returns the block evicted for
   * it, or {@link #NOTHING}. Only called when the capacity is above 0.
   */
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

  /** Touches all blocks of a request, whose hits were counted before. */
  void touchAll(NumberedRequest request, TouchOrder touchOrder) {
    for (int i = 0; i < request.count; i++) {
      touch(request.touched(touchOrder, i));
    }
  }
}
