package ucm.lite.policy;

import java.util.Arrays;
import java.util.TreeSet;
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

  /** The time of the last touch in the upper half, the block in the lower. */
  private final TreeSet<Long> leaves = new TreeSet<>();

  private int held;
  private int now;

  PrefixLruCache(int capacity, int blocks) {
    super(capacity);
    parent = new int[blocks];
    Arrays.fill(parent, OUTSIDE);
    children = new int[blocks];
    touchedAt = new int[blocks];
  }

  @Override
  public boolean contains(int block) {
    return parent[block] != OUTSIDE;
  }

  @Override
  public int touch(int block) {
    throw new UnsupportedOperationException("only whole requests say what continues what");
  }

  /** Touches first to last, whatever the order asked for: a block cannot come before its prefix. */
  @Override
  void touchAll(NumberedRequest request, TouchOrder order) {
    now++;
    int before = ROOT;
    for (int i = 0; i < request.count; i++) {
      int block = request.blocks[i];
      if (!contains(block)) {
        if (held == capacity && !evict()) {
          return;
        }
        held++;
        parent[block] = before;
        if (before != ROOT && children[before]++ == 0) {
          leaves.remove(key(before));
        }
      }
      boolean isLeaf = children[block] == 0;
      if (isLeaf) {
        leaves.remove(key(block));
      }
      touchedAt[block] = now;
      if (isLeaf) {
        leaves.add(key(block));
      }
      before = block;
    }
  }

  /** Evicts the oldest leaf; false when all leaves belong to the request at hand. */
  private boolean evict() {
    long oldest = leaves.first();
    if (oldest >>> Integer.SIZE == now) {
      return false;
    }
    leaves.remove(oldest);
    int leaf = (int) oldest;
    int before = parent[leaf];
    parent[leaf] = OUTSIDE;
    held--;
    if (before != ROOT && --children[before] == 0) {
      leaves.add(key(before));
    }
    return true;
  }

  private long key(int block) {
    return (long) touchedAt[block] << Integer.SIZE | block;
  }
}
