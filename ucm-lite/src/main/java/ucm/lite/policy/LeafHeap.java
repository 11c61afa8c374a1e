package ucm.lite.policy;

import java.util.Arrays;

/** A binary heap of blocks by the time of their last touch, oldest first, that knows each place. */
final class LeafHeap {
  private static final int NOWHERE = -1;

  private final int[] place;
  private final int[] time;
  private int[] heap = new int[64];
  private int size;

  LeafHeap(int blocks) {
    place = new int[blocks];
    Arrays.fill(place, NOWHERE);
    time = new int[blocks];
  }

  /** The block with the oldest touch; there must be one. */
  int oldest() {
    return heap[0];
  }

  /** Adds a block, or changes its time. */
  void put(int block, int touchedAt) {
    time[block] = touchedAt;
    int at = place[block];
    if (at == NOWHERE) {
      if (size == heap.length) {
        heap = Arrays.copyOf(heap, 2 * size);
      }
      at = size++;
    }
    settle(at, block);
  }

  /** Takes a block out; it must be inside. */
  void remove(int block) {
    int at = place[block];
    place[block] = NOWHERE;
    int last = heap[--size];
    if (at < size) {
      settle(at, last);
    }
  }

  /** Finds the place of a block that may go to a hole. */
  private void settle(int hole, int block) {
    int at = hole;
    int t = time[block];
    while (at > 0 && time[heap[(at - 1) / 2]] > t) {
      set(at, heap[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && time[heap[child + 1]] < time[heap[child]]) {
        child++;
      }
      if (time[heap[child]] >= t) {
        break;
      }
      set(at, heap[child]);
      at = child;
    }
    set(at, block);
  }

  private void set(int at, int block) {
    heap[at] = block;
    place[block] = at;
  }
}
