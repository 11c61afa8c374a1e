package ucm.lite.policy;

import ucm.platform.eviction.EntryLists;

/**
 * ARC (Megiddo, Modha: ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST'03): blocks seen
 * once and blocks seen again in two LRU lists, the names of what left each in two more, and a target
 * for the first list that follows which of the two remembered names are asked for.
 */
final class ArcCache extends BlockCache {
  private static final int ONCE = 0;
  private static final int AGAIN = 1;
  private static final int ONCE_GHOST = 2;
  private static final int AGAIN_GHOST = 3;

  private final EntryLists lists;

  /** How many blocks seen once are to be kept. */
  private int target;

  ArcCache(int capacity, int blocks) {
    super(capacity);
    lists = new EntryLists(blocks);
  }

  @Override
  public boolean contains(int block) {
    int list = lists.listOf(block);
    return list == ONCE || list == AGAIN;
  }

  @Override
  public int touch(int block) {
    int once = lists.size(ONCE_GHOST);
    int again = lists.size(AGAIN_GHOST);
    return switch (lists.listOf(block)) {
      case ONCE, AGAIN -> {
        lists.addNewest(AGAIN, block);
        yield NOTHING;
      }
      case ONCE_GHOST -> {
        target = Math.min(capacity, target + Math.max(1, again / once));
        yield bringBack(block, /* wasSeenAgain= */ false);
      }
      case AGAIN_GHOST -> {
        target = Math.max(0, target - Math.max(1, once / again));
        yield bringBack(block, /* wasSeenAgain= */ true);
      }
      default -> insert(block);
    };
  }

  private int bringBack(int block, boolean wasSeenAgain) {
    int evicted = replace(wasSeenAgain);
    lists.addNewest(AGAIN, block);
    return evicted;
  }

  private int insert(int block) {
    int evicted = NOTHING;
    int once = lists.size(ONCE) + lists.size(ONCE_GHOST);
    int all = once + lists.size(AGAIN) + lists.size(AGAIN_GHOST);
    if (once == capacity) {
      if (lists.size(ONCE) < capacity) {
        lists.removeOldest(ONCE_GHOST);
        evicted = replace(/* wasSeenAgain= */ false);
      } else {
        evicted = lists.removeOldest(ONCE);
      }
    } else if (all >= capacity) {
      if (all == 2L * capacity) {
        lists.removeOldest(AGAIN_GHOST);
      }
      evicted = replace(/* wasSeenAgain= */ false);
    }
    lists.addNewest(ONCE, block);
    return evicted;
  }

  /** Turns a block into a remembered name, unless there is room. */
  private int replace(boolean wasSeenAgain) {
    if (lists.size(ONCE) + lists.size(AGAIN) < capacity) {
      return NOTHING;
    }
    int once = lists.size(ONCE);
    boolean fromOnce =
        once > 0 && (once > target || (wasSeenAgain && once == target) || lists.size(AGAIN) == 0);
    int evicted = lists.removeOldest(fromOnce ? ONCE : AGAIN);
    lists.addNewest(fromOnce ? ONCE_GHOST : AGAIN_GHOST, evicted);
    return evicted;
  }
}
