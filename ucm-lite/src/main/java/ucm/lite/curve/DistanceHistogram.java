package ucm.lite.curve;

import java.util.Arrays;

/**
 * Weighted counts of blocks and tokens by stack distance, in buckets that are exact below 256 and
 * 1/128 of the distance wide above: constant memory for any distance.
 */
final class DistanceHistogram {
  private static final int MANTISSA_BITS = 7;
  private static final int BUCKETS_AN_OCTAVE = 1 << MANTISSA_BITS;

  private double[] blocks = new double[2 * BUCKETS_AN_OCTAVE];
  private double[] tokens = new double[2 * BUCKETS_AN_OCTAVE];

  /** Counts blocks and tokens that hit from a capacity of {@code distance} (1 or more) on. */
  void add(long distance, double weightedBlocks, double weightedTokens) {
    int bucket = bucket(distance);
    if (bucket >= blocks.length) {
      int length = (bucket / BUCKETS_AN_OCTAVE + 1) * BUCKETS_AN_OCTAVE;
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

  /** The largest distance of a bucket: from this capacity on, all of it hits. */
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
