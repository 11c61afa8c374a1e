package ucm.lite.policy;

/** A set of block numbers: one bit a block. */
final class BlockSet {
  private final long[] words;

  /** Creates an empty set of numbers below {@code blocks}. */
  BlockSet(int blocks) {
    words = new long[(blocks >>> 6) + 1];
  }

  boolean contains(int block) {
    return (words[block >>> 6] >>> block & 1) != 0;
  }

  /** Adds a block; false when it was there. */
  boolean add(int block) {
    long before = words[block >>> 6];
    words[block >>> 6] = before | 1L << block;
    return (before >>> block & 1) == 0;
  }

  void remove(int block) {
    words[block >>> 6] &= ~(1L << block);
  }
}
