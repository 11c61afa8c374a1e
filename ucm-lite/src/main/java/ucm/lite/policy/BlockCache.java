package ucm.lite.policy;

import ucm.lite.record.NumberedRequest;
import ucm.lite.record.TouchOrder;

/**
 * A cache of blocks under one policy and of one capacity; blocks are small numbers and the state
 * lies in arrays, so that no reference allocates anything.
 */
public abstract class BlockCache {
  /** What {@link #touch} returns when nothing was evicted. */
  public static final int NOTHING = -1;

  public final int capacity;

  BlockCache(int capacity) {
    this.capacity = capacity;
  }

  public abstract boolean contains(int block);

  /**
   * Notes a reference to a block, and inserts it when it is absent; returns the block evicted for
   * it, or {@link #NOTHING}. Only called when the capacity is above 0.
   */
  public abstract int touch(int block);

  /** Touches all blocks of a request, whose hits were counted before. */
  void touchAll(NumberedRequest request, TouchOrder order) {
    for (int i = 0; i < request.count; i++) {
      touch(request.touched(order, i));
    }
  }
}
