package ucm.platform.eviction;

import java.util.function.IntPredicate;

/** Least recently used goes first. 12 bytes an entry. */
public final class LruOrder implements EvictionOrder {

  private static final int LIST = 0;

  private final EntryLists entries;

  /** An empty order, with room for entries below {@code expected}. */
  public LruOrder(int expected) {
    entries = new EntryLists(expected);
  }

  @Override
  public void add(int entry, long key) {
    entries.addNewest(LIST, entry);
  }

  @Override
  public void touch(int entry) {
    entries.addNewest(LIST, entry);
  }

  @Override
  public int evict(IntPredicate mayGo) {
    for (int left = entries.size(LIST); left > 0; left--) {
      int entry = entries.oldest(LIST);
      if (mayGo.test(entry)) {
        entries.remove(entry);
        return entry;
      }
      entries.addNewest(LIST, entry);
    }
    return NONE;
  }

  @Override
  public void remove(int entry) {
    entries.remove(entry);
  }
}
