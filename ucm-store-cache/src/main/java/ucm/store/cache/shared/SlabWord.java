package ucm.store.cache.shared;

/**
 * The word of a slab, the place of a block in the shared pool.
 *
 * <pre>
 *  63              32 31          4    3       2     0
 * +------------------+-------------+----------+-------+
 * | dumpers, a bit   | generation  | complete | state |
 * | each             |             |          |       |
 * +------------------+-------------+----------+-------+
 *
 *   FREE --taken for a block--> NAMED --evicted, dropped, failed--> ORPHAN --no slot referred to--> FREE
 * </pre>
 *
 * <p>Only a NAMED slab is found. {@code complete} says that all of its slots are READY; it is a memory
 * of what the words of the slots say, and set again as often as one likes. The dumper is the owner that
 * dumped shards of the block which the next stage may not have yet: one at the most, as a stage
 * takes a block from one writer.
 */
final class SlabWord {

  static final int FREE = 0;
  static final int NAMED = 1;
  static final int ORPHAN = 2;

  static final long COMPLETE = 8;

  private static final int DUMPERS_SHIFT = 32;
  private static final long STATE_MASK = 7;
  private static final long GENERATION_MASK = 0xfffffff0L;
  private static final long GENERATION_STEP = 0x10;

  private SlabWord() {}

  static int state(long word) {
    return (int) (word & STATE_MASK);
  }

  static boolean isComplete(long word) {
    return (word & (STATE_MASK | COMPLETE)) == (NAMED | COMPLETE);
  }

  /** Whether two words are of the same use of a slab for the same block. */
  static boolean sameBlock(long word, long other) {
    return ((word ^ other) & (STATE_MASK | GENERATION_MASK)) == 0;
  }

  static int dumpers(long word) {
    return (int) (word >>> DUMPERS_SHIFT);
  }

  static long dumper(int owner) {
    return 1L << (DUMPERS_SHIFT + owner);
  }

  static long named(long free, long dumpers) {
    return (free & GENERATION_MASK) | NAMED | dumpers;
  }

  static long orphaned(long word) {
    return (word & ~(STATE_MASK | COMPLETE)) | ORPHAN;
  }

  static long freed(long word) {
    return ((word & GENERATION_MASK) + GENERATION_STEP) & GENERATION_MASK;
  }
}
