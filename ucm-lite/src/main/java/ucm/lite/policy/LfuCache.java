package ucm.lite.policy;

/**
 * Least frequently used goes first, among equals the least recently used; counts are forgotten at
 * eviction. Constant time by a list for each count (Shah, Mitra, Matani: An O(1) algorithm for
 * implementing the LFU cache eviction scheme, 2010).
 */
final class LfuCache extends BlockCache {
  private final BlockLists byCount;
  private int held;

  /** No list below this count has a block. */
  private int least = 1;

  LfuCache(int capacity, int blocks) {
    super(capacity);
    byCount = new BlockLists(blocks, 16);
  }

  @Override
  boolean contains(int block) {
    return byCount.listOf(block) != BlockLists.NONE;
  }

  @Override
  int touch(int block) {
    int count = byCount.listOf(block);
    if (count != BlockLists.NONE) {
      byCount.moveToHead(count + 1, block);
      return NOTHING;
    }
    int evicted = NOTHING;
    if (held == capacity) {
      while (byCount.tail(least) == BlockLists.NONE) {
        least++;
      }
      evicted = byCount.removeTail(least);
    } else {
      held++;
    }
    byCount.addHead(1, block);
    least = 1;
    return evicted;
  }
}
