package ucm.lite;

import java.util.Arrays;

/**
 * A FIFO cache of one capacity: a ring of the blocks inside, overwritten by a circular hand, and a
 * bit for each block that says whether it is inside. 4 bytes a block held and one bit a distinct
 * block.
 */
final class FifoCache {
  private final long capacity;
  private int[] ring = new int[64];
  private long[] inside = new long[16];
  private int held;
  private int hand;

  FifoCache(long capacity) {
    this.capacity = capacity;
  }

  long capacity() {
    return capacity;
  }

  /** Makes room for blocks numbered below {@code blocks}. */
  void ensureBlocks(int blocks) {
    int words = (blocks >>> 6) + 1;
    if (words > inside.length) {
      inside = Arrays.copyOf(inside, 2 * words);
    }
  }

  boolean contains(int block) {
    return (inside[block >>> 6] >>> block & 1) != 0;
  }

  /** Inserts the block unless it is inside; evicts the block inserted first when full. */
  void touch(int block) {
    if (contains(block) || capacity == 0) {
      return;
    }
    if (held < capacity) {
      if (held == ring.length) {
        ring = Arrays.copyOf(ring, 2 * held);
      }
      ring[held++] = block;
    } else {
      int evicted = ring[hand];
      inside[evicted >>> 6] &= ~(1L << evicted);
      ring[hand] = block;
      hand = hand + 1 == held ? 0 : hand + 1;
    }
    inside[block >>> 6] |= 1L << block;
  }
}
