package ucm.lite.policy;

import java.util.Arrays;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.TouchOrder;

/**
 * Prefix-aware LRU: of the blocks that no block inside continues (leaves), the least recently used
 * goes first, as radix-tree caches do it. So what is inside always reaches back to the first block
 * of its prompt.
 *
 * <p>Blocks of the request at hand are not evicted; where it alone fills the cache, its end is not
 * inserted. A block continues the one before it in the request that inserted it.
 */
final class PrefixLruCache extends BlockCache {
  private static final int OUTSIDE = -2;
  private static final int ROOT = -1;

  /** The block each block continues, {@link #ROOT} or {@link #OUTSIDE}. */
  private final int[] parent;

  private final int[] children;
  private final int[] touchedAt;
  private final LeafHeap leaves;
  private int held;
  private int now;

  PrefixLruCache(int capacity, int blocks) {
    super(capacity);
    parent = new int[blocks];
    Arrays.fill(parent, OUTSIDE);
    children = new int[blocks];
    touchedAt = new int[blocks];
    leaves = new LeafHeap(blocks);
  }

  @Override
  boolean contains(int block) {
    return parent[block] != OUTSIDE;
  }

  @Override
  int touch(int block) {
    throw new UnsupportedOperationException("only whole requests say what continues what");
  }

  /** Touches first to last, whatever the order asked for: a block cannot come before its prefix. */
  @Override
  void touchAll(NumberedRequest request, TouchOrder order) {
    now++;
    int[] blocks = request.blocks;
    int count = request.count;
    int before = ROOT;
    for (int i = 0; i < count; i++) {
      int block = blocks[i];
      touchedAt[block] = now;
      if (contains(block)) {
        if (children[block] == 0) {
          leaves.put(block, now);
        }
      } else {
        if (held == capacity && !evict()) {
          return;
        }
        insert(block, before);
      }
      before = block;
    }
  }

  private void insert(int block, int before) {
    held++;
    parent[block] = before;
    if (before != ROOT && children[before]++ == 0) {
      leaves.remove(before);
    }
    leaves.put(block, now);
  }

  /** Evicts the oldest leaf; false when all leaves belong to the request at hand. */
  private boolean evict() {
    int leaf = leaves.oldest();
    if (touchedAt[leaf] == now) {
      return false;
    }
    leaves.remove(leaf);
    int before = parent[leaf];
    parent[leaf] = OUTSIDE;
    held--;
    if (before != ROOT && --children[before] == 0) {
      leaves.put(before, touchedAt[before]);
    }
    return true;
  }
}
