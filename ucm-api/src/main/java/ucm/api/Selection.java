package ucm.api;

import java.util.BitSet;

/**
 * Some of the positions in an array, in order: a bit for each position from the first to the last of
 * them, and half a bit more by which the i-th is found without counting them all. Immutable and
 * thread-safe.
 */
final class Selection {

  private final int base;
  private final long[] bits;
  // How many are chosen before each word of bits.
  private final int[] before;

  /**
   * Chooses positions.
   *
   * @param base the position that bit 0 stands for
   * @param chosen which of those that follow; copied
   */
  Selection(int base, BitSet chosen) {
    this.base = base;
    this.bits = chosen.toLongArray();
    this.before = new int[bits.length];
    int count = 0;
    for (int word = 0; word < bits.length; word++) {
      before[word] = count;
      count += Long.bitCount(bits[word]);
    }
  }

  /** The i-th position, from 0 on; i must be less than there are. */
  int at(int i) {
    int word = wordOf(i);
    // Among the bits of that word that are set, the one with i - before[word] below it.
    long bit = Long.expand(1L << (i - before[word]), bits[word]);
    return base + word * Long.SIZE + Long.numberOfTrailingZeros(bit);
  }

  /** The last word before which there are i at the most: words without any come before it. */
  private int wordOf(int i) {
    int low = 0;
    int high = before.length - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (before[middle] <= i) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
}
