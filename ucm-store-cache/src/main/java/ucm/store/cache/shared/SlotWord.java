package ucm.store.cache.shared;

/**
 * The word of a shared slot: its state, who fills it, and which owners refer to it, so that one
 * compare-and-swap decides about all of it.
 *
 * <pre>
 *  63              32 31          8 7      3 2     0
 * +------------------+-------------+--------+-------+
 * | owners, a bit    | generation  | filler | state |
 * | each             |             |        |       |
 * +------------------+-------------+--------+-------+
 *
 *   EMPTY --reservation--> LOADING | DUMPING --filled--> READY
 *     ^                    |                         |
 *     |                    +--not filled--> FAILED   |
 *     +------- slab reused, no owner left -------+
 * </pre>
 *
 * <p>An owner's bit stays for as long as one of its threads refers to the slot; how many do is the
 * owner's own business. The generation grows each time the slab is reused, so that a word seen
 * before is not taken for the same one.
 */
final class SlotWord {

  static final int EMPTY = 0;
  static final int LOADING = 1;
  static final int DUMPING = 2;
  static final int READY = 3;
  static final int FAILED = 4;

  private static final int FILLER_SHIFT = 3;
  private static final int OWNERS_SHIFT = 32;
  private static final long STATE_MASK = 7;
  private static final long FILLER_MASK = 31L << FILLER_SHIFT;
  private static final long GENERATION_MASK = 0xffffff00L;
  private static final long GENERATION_STEP = 0x100;

  private SlotWord() {}

  static int state(long word) {
    return (int) (word & STATE_MASK);
  }

  static int filler(long word) {
    return (int) ((word & FILLER_MASK) >>> FILLER_SHIFT);
  }

  /** The owners that refer to it, bit by bit. */
  static int owners(long word) {
    return (int) (word >>> OWNERS_SHIFT);
  }

  static boolean isFilling(long word) {
    int state = state(word);
    return state == LOADING || state == DUMPING;
  }

  /** The bit of an owner. */
  static long bit(int owner) {
    return 1L << (OWNERS_SHIFT + owner);
  }

  static long withState(long word, int state) {
    return (word & ~STATE_MASK) | state;
  }

  /** Reserved by an owner, which refers to it. */
  static long reserved(long word, int owner, int state) {
    return (word & ~(STATE_MASK | FILLER_MASK))
        | ((long) owner << FILLER_SHIFT)
        | state
        | bit(owner);
  }

  /** Empty, of the next generation, without owners. */
  static long recycled(long word) {
    return ((word & GENERATION_MASK) + GENERATION_STEP) & GENERATION_MASK;
  }
}
