package ucm.platform.eviction;

import java.util.Arrays;

/**
 * Doubly linked lists of entries; an entry is in at most one of them. Links lie in arrays, 12 bytes an
 * entry, so any entry is put in and taken out in constant time. Grows with the largest entry and the
 * largest number of a list. Not thread-safe.
 */
public final class EntryLists {

  /** No entry, or no list. */
  public static final int NONE = -1;

  private int[] newer;
  private int[] older;
  private int[] listOf;
  private int[] newest = {};
  private int[] oldest = {};
  private int[] sizes = {};

  /** Empty lists, with room for entries below {@code expected}. */
  public EntryLists(int expected) {
    newer = new int[expected];
    older = new int[expected];
    listOf = new int[expected];
    Arrays.fill(listOf, NONE);
  }

  /** The list an entry is in, or {@link #NONE}. */
  public int listOf(int entry) {
    return entry < listOf.length ? listOf[entry] : NONE;
  }

  /** How many entries a list has. */
  public int size(int list) {
    return list < sizes.length ? sizes[list] : 0;
  }

  /** The entry longest in a list, or {@link #NONE}. */
  public int oldest(int list) {
    return list < oldest.length ? oldest[list] : NONE;
  }

  /** Puts an entry at the new end of a list; takes it from the list it is in, if any. */
  public void addNewest(int list, int entry) {
    makeRoom(list, entry);
    remove(entry);
    int before = newest[list];
    newer[entry] = NONE;
    older[entry] = before;
    if (before == NONE) {
      oldest[list] = entry;
    } else {
      newer[before] = entry;
    }
    newest[list] = entry;
    listOf[entry] = list;
    sizes[list]++;
  }

  /** Takes an entry out of its list, if it is in one. */
  public void remove(int entry) {
    int list = listOf(entry);
    if (list == NONE) {
      return;
    }
    int after = newer[entry];
    int before = older[entry];
    if (after == NONE) {
      newest[list] = before;
    } else {
      older[after] = before;
    }
    if (before == NONE) {
      oldest[list] = after;
    } else {
      newer[before] = after;
    }
    listOf[entry] = NONE;
    sizes[list]--;
  }

  private void makeRoom(int list, int entry) {
    if (entry >= listOf.length) {
      int before = listOf.length;
      int length = Math.max(entry + 1, before + before / 2);
      newer = Arrays.copyOf(newer, length);
      older = Arrays.copyOf(older, length);
      listOf = Arrays.copyOf(listOf, length);
      Arrays.fill(listOf, before, length, NONE);
    }
    if (list >= sizes.length) {
      int before = sizes.length;
      int length = Math.max(list + 1, 2 * before);
      newest = Arrays.copyOf(newest, length);
      oldest = Arrays.copyOf(oldest, length);
      sizes = Arrays.copyOf(sizes, length);
      Arrays.fill(newest, before, length, NONE);
      Arrays.fill(oldest, before, length, NONE);
    }
  }
}
