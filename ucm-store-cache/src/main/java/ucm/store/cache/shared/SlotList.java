package ucm.store.cache.shared;

import java.util.Arrays;

/** Some slots in no order. Guarded by its owner's lock, except {@link #isEmpty}. */
final class SlotList {

  private static final int FIRST_CAPACITY = 16;

  private int[] slots = new int[FIRST_CAPACITY];
  private int size;
  private volatile boolean empty = true;

  /** Whether nothing is in it; right at some moment lately when asked without the lock. */
  boolean isEmpty() {
    return empty;
  }

  int size() {
    return size;
  }

  int get(int i) {
    return slots[i];
  }

  void add(int slot) {
    if (size == slots.length) {
      slots = Arrays.copyOf(slots, 2 * size);
    }
    slots[size++] = slot;
    empty = false;
  }

  /** Takes out what {@link #get} gives; another one takes its place. */
  void remove(int i) {
    slots[i] = slots[--size];
    empty = size == 0;
  }
}
