package ucm.lite.curve;

import ucm.platform.table.BlockTable;

/**
 * How much of a trace the sampled curve looks at (SHARDS; Waldspurger, Park, Garthwaite, Ahmad:
 * Efficient MRC Construction with SHARDS, FAST'15): all references to a part of the blocks, chosen
 * by a hash of their ids.
 *
 * <p>Blocks are sampled, not requests or sessions: see {@code docs/traces.md} for the measurement.
 *
 * @param rate share of the blocks to begin with, above 0 and at most 1
 * @param maxBlocks the most sampled blocks kept at a time, 1 or more; when there are more, the rate
 *     falls (fixed-size SHARDS). {@link Integer#MAX_VALUE} keeps the rate (fixed-rate SHARDS).
 */
public record Sampling(double rate, int maxBlocks) {
  public Sampling {
    if (!(rate > 0 && rate <= 1)) {
      throw new IllegalArgumentException(
          "the sampling rate is " + rate + ", must be above 0 and at most 1");
    }
    if (maxBlocks < 1) {
      throw new IllegalArgumentException(
          "the number of sampled blocks is " + maxBlocks + ", must be 1 or more");
    }
  }

  /** Fixed-rate sampling of a share of the blocks, above 0 and at most 1. */
  public static Sampling fixedRate(double rate) {
    return new Sampling(rate, Integer.MAX_VALUE);
  }

  /** Fixed-size sampling, which begins with all blocks and keeps at most so many. */
  public static Sampling fixedSize(int maxBlocks) {
    return new Sampling(1, maxBlocks);
  }

  /**
   * Decides about a block of a recording. The first block of traces that count their ids is 0, whose
   * plain hash is 0, too: it would be in every sample, and is often the one block of all prompts.
   */
  public static long hash(long high, long low) {
    return BlockTable.hash(high, ~low);
  }
}
