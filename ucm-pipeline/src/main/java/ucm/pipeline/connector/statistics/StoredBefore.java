package ucm.pipeline.connector.statistics;

import ucm.api.BlockIds;

/**
 * Remembers which blocks were stored or found lately, so that a miss can be called an eviction and not
 * a block that was never stored. A table of fixed size ({@value #BLOCKS} blocks, 2 MiB): a block
 * may push out another one, whose eviction then goes unseen; a block is never taken for another in
 * practice, as 64 bits of its hash are compared. Used by one thread.
 */
final class StoredBefore {

  private static final int BLOCKS = 1 << 18;

  private final long[] table = new long[BLOCKS];

  void add(BlockIds ids, int from, int to) {
    for (int i = from; i < to; i++) {
      table[slot(ids, i)] = ids.low(i);
    }
  }

  boolean contains(BlockIds ids, int i) {
    return table[slot(ids, i)] == ids.low(i);
  }

  private static int slot(BlockIds ids, int i) {
    return (int) ids.high(i) & BLOCKS - 1;
  }
}
