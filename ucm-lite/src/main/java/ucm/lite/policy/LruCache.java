package ucm.lite.policy;

/** Least recently used goes first. */
public final class LruCache extends BlockCache {
  private static final int LIST = 0;

  private final BlockLists lists;

  public LruCache(int capacity, int blocks) {
    super(capacity);
    lists = new BlockLists(blocks, 1);
  }

  @Override
  public boolean contains(int block) {
    return lists.listOf(block) == LIST;
  }

  @Override
  public int touch(int block) {
    if (contains(block)) {
      lists.moveToHead(LIST, block);
      return NOTHING;
    }
    int evicted = lists.size(LIST) == capacity ? lists.removeTail(LIST) : NOTHING;
    lists.addHead(LIST, block);
    return evicted;
  }

  int size() {
    return lists.size(LIST);
  }
}
