package ucm.lite.policy;

import ucm.platform.eviction.EntryLists;

/**
 * Least frequently used goes first, among equals the least recently used; counts are forgotten at
 * eviction. Constant time by a list for each count (Shah, Mitra, Matani: An O(1) algorithm for
 * implementing the LFU cache eviction scheme, 2010).
 */
final class LfuCache extends BlockCache {
  private final EntryLists byCount;
  private int held;

  /** No list below this count has a block. */
  private int least = 1;

  LfuCache(int capacity, int blocks) {
    super(capacity);
    byCount = new EntryLists(blocks);
  }

  @Override
  public boolean contains(int block) {
    return byCount.listOf(block) != EntryLists.NONE;
  }

  @Override
  public int touch(int block) {
    if (contains(block)) {
      byCount.addNewest(byCount.listOf(block) + 1, block);
      return NOTHING;
    }
    int evicted = NOTHING;
    if (held == capacity) {
      while (byCount.size(least) == 0) {
        least++;
      }
      evicted = byCount.removeOldest(least);
    } else {
      held++;
    }
    byCount.addNewest(1, block);
    least = 1;
    return evicted;
  }
}
