package ucm.pipeline.connector;

/**
 * A set of block ids that is filled and emptied again for each step; keeps its memory. Open
 * addressing with linear probing; ids are hashes already, so their low bits choose the place.
 */
final class IdSet {

  private static final int FIRST_SLOTS = 64;

  private long[] words = new long[2 * FIRST_SLOTS];
  private int[] filledIn = new int[FIRST_SLOTS];
  private int generation = 1;
  private int size;

  /** Empties the set. */
  void clear() {
    generation++;
    size = 0;
  }

  /** Adds an id; says whether it was not there. */
  boolean add(long high, long low) {
    if (2 * size >= filledIn.length) {
      grow();
    }
    int mask = filledIn.length - 1;
    int at = (int) low & mask;
    while (filledIn[at] == generation) {
      if (words[2 * at] == high && words[2 * at + 1] == low) {
        return false;
      }
      at = (at + 1) & mask;
    }
    filledIn[at] = generation;
    words[2 * at] = high;
    words[2 * at + 1] = low;
    size++;
    return true;
  }

  private void grow() {
    long[] oldWords = words;
    int[] oldFilled = filledIn;
    words = new long[2 * oldWords.length];
    filledIn = new int[2 * oldFilled.length];
    size = 0;
    for (int i = 0; i < oldFilled.length; i++) {
      if (oldFilled[i] == generation) {
        add(oldWords[2 * i], oldWords[2 * i + 1]);
      }
    }
  }
}
