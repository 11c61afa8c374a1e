package ucm.lite.curve;

import java.util.Arrays;

/**
 * Weighted counts of blocks and tokens by stack distance: of each distance, or in buckets that are exact
 * below 256 and 1/128 of the distance wide above, in constant memory for any distance.
 */
final class DistanceHistogram {
  private static final int MANTISSA_BITS = 7;
  private static final int BUCKETS_AN_OCTAVE = 1 << MANTISSA_BITS;

  private double[] blocks = new double[2 * BUCKETS_AN_OCTAVE];
  private double[] tokens = new double[2 * BUCKETS_AN_OCTAVE];
  private final boolean exact;

  DistanceHistogram(boolean exact) {
    this.exact = exact;
  }

  /** Counts blocks and tokens that hit from a capacity of {@code distance} (1 or more) on. */
  void add(long distance, double weightedBlocks, double weightedTokens) {
    int bucket = exact ? (int) distance : bucket(distance);
    if (bucket >= blocks.length) {
      int length = (int) Math.min(Integer.MAX_VALUE - 8, 2L * bucket);
      blocks = Arrays.copyOf(blocks, length);
      tokens = Arrays.copyOf(tokens, length);
    }
    blocks[bucket] += weightedBlocks;
    tokens[bucket] += weightedTokens;
  }

  int buckets() {
    return blocks.length;
  }

  double blocks(int bucket) {
    return blocks[bucket];
  }

  double tokens(int bucket) {
    return tokens[bucket];
  }

  /** The smallest capacity with which all of a bucket hits. */
  long capacity(int bucket) {
    return exact ? bucket : end(bucket);
  }

  /** The largest distance of a bucket that is not exact. */
  static long end(int bucket) {
    if (bucket < 2 * BUCKETS_AN_OCTAVE) {
      return bucket;
    }
    int shift = (bucket >>> MANTISSA_BITS) - 1;
    long mantissa = (long) BUCKETS_AN_OCTAVE + (bucket & (BUCKETS_AN_OCTAVE - 1));
    return ((mantissa + 1) << shift) - 1;
  }

  /** The bucket of a distance, 0 or more. */
  static int bucket(long distance) {
    int shift = Math.max(0, 63 - MANTISSA_BITS - Long.numberOfLeadingZeros(distance));
    return (shift << MANTISSA_BITS) + (int) (distance >>> shift);
  }
}
