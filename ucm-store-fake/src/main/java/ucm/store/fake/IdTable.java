package ucm.store.fake;

import java.util.Arrays;
import ucm.platform.eviction.LruOrder;
import ucm.platform.table.BlockTable;

/**
 * A bounded set of block ids that knows which was used least recently, and has some marks for each. Calls
 * of {@link #find} may go side by side; the others are not thread-safe.
 */
final class IdTable {

  /** No slot. */
  static final int NONE = BlockTable.NONE;

  private final int capacity;
  private final BlockTable ids;
  private final LruOrder order;
  private final int marksPerSlot;
  private final long[] marks;

  /**
   * An empty table; takes all of its memory now.
   *
   * @param capacity how many ids it holds, at most 2^28
   * @param bits how many marks each id carries
   */
  IdTable(int capacity, int bits) {
    this.capacity = capacity;
    this.ids = new BlockTable(capacity);
    this.order = new LruOrder(capacity);
    this.marksPerSlot = (bits + Long.SIZE - 1) / Long.SIZE;
    this.marks = new long[capacity * marksPerSlot];
  }

  int size() {
    return ids.size();
  }

  boolean isFull() {
    return ids.size() == capacity;
  }

  /** The slot of an id, valid until it is removed; or {@link #NONE}. */
  int find(long high, long low) {
    return ids.find(high, low);
  }

  /** Adds an id that is not there, to a table that is not full, as the one used last. */
  int add(long high, long low) {
    int slot = ids.put(high, low);
    Arrays.fill(marks, slot * marksPerSlot, (slot + 1) * marksPerSlot, 0);
    order.add(slot, high);
    return slot;
  }

  /** Makes an id the one used last. */
  void use(int slot) {
    order.touch(slot);
  }

  /** Removes the id that was not used for the longest time; the table is not empty. */
  void removeOldest() {
    ids.remove(order.evict(_ -> true));
  }

  /** Removes an id. */
  void remove(int slot) {
    order.remove(slot);
    ids.remove(slot);
  }

  /**
   * Sets a mark of an id.
   *
   * @return how many of its marks are set now
   */
  int mark(int slot, int bit) {
    int from = slot * marksPerSlot;
    marks[from + bit / Long.SIZE] |= 1L << bit;
    int set = 0;
    for (int i = from; i < from + marksPerSlot; i++) {
      set += Long.bitCount(marks[i]);
    }
    return set;
  }
}
