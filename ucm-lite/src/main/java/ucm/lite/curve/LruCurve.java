package ucm.lite.curve;

import java.util.Arrays;
import ucm.lite.record.TouchOrder;

/**
 * The hits of an LRU cache over a whole trace, for every capacity: exact, or estimated from a sample
 * of the blocks. A step function: between two steps nothing changes.
 * Immutable and safe to share.
 */
public final class LruCurve {
  /** A capacity that holds everything. */
  public static final long UNBOUNDED = Long.MAX_VALUE;

  private final TouchOrder order;
  private final double sampleRate;
  private final long[] capacities;
  private final long[] blocks;
  private final long[] tokens;

  /** Takes the first entries of arrays. */
  private LruCurve(
      TouchOrder order, double rate, int steps, long[] capacities, long[] blocks, long[] tokens) {
    this.order = order;
    this.sampleRate = rate;
    this.capacities = Arrays.copyOf(capacities, steps);
    this.blocks = Arrays.copyOf(blocks, steps);
    this.tokens = Arrays.copyOf(tokens, steps);
  }

  /**
   * Sums up weighted hits. What is missing at the start is put at the smallest distance; as it may
   * be negative, the curve is kept from falling below nothing.
   */
  static LruCurve of(
      TouchOrder order,
      double sampleRate,
      DistanceHistogram hits,
      double missingBlocks,
      double missingTokens) {
    int buckets = hits.buckets();
    long[] capacities = new long[buckets];
    long[] blocks = new long[buckets];
    long[] tokens = new long[buckets];
    double blockSum = missingBlocks;
    double tokenSum = missingTokens;
    long lastBlocks = 0;
    long lastTokens = 0;
    int steps = 0;
    for (int bucket = 1; bucket < buckets; bucket++) {
      blockSum += hits.blocks(bucket);
      tokenSum += hits.tokens(bucket);
      long blocksHere = Math.max(lastBlocks, Math.round(blockSum));
      long tokensHere = Math.max(lastTokens, Math.round(tokenSum));
      if (blocksHere > lastBlocks || tokensHere > lastTokens) {
        capacities[steps] = hits.capacity(bucket);
        blocks[steps] = blocksHere;
        tokens[steps++] = tokensHere;
        lastBlocks = blocksHere;
        lastTokens = tokensHere;
      }
    }
    return new LruCurve(order, sampleRate, steps, capacities, blocks, tokens);
  }

  /** The share of blocks looked at: 1 for an exact curve, less for an estimated one. */
  public double sampleRate() {
    return sampleRate;
  }

  public TouchOrder touchOrder() {
    return order;
  }

  /** Tokens hit by a cache of so many blocks, 0 or more; {@link #UNBOUNDED} for all. */
  public long hitTokens(long capacityBlocks) {
    return at(capacityBlocks).hitTokens();
  }

  /** The hits of a cache of so many blocks, 0 or more; {@link #UNBOUNDED} for all. */
  public CacheHits at(long capacityBlocks) {
    if (capacityBlocks < 0) {
      throw new IllegalArgumentException(
          "capacityBlocks is " + capacityBlocks + ", must not be negative");
    }
    int found = Arrays.binarySearch(capacities, capacityBlocks);
    int step = found >= 0 ? found : -found - 2;
    return step < 0
        ? new CacheHits(capacityBlocks, 0, 0)
        : new CacheHits(capacityBlocks, blocks[step], tokens[step]);
  }

  /** The number of capacities at which the hits grow; 0 when nothing hits at any capacity. */
  public int stepCount() {
    return capacities.length;
  }

  /** The smallest capacity that hits so many tokens; {@link #UNBOUNDED} when none does. */
  public long smallestCapacity(long wanted) {
    if (wanted <= 0) {
      return 0;
    }
    int found = Arrays.binarySearch(tokens, wanted);
    // Several steps may hit as many tokens: an empty block hits as a block.
    while (found > 0 && tokens[found - 1] == wanted) {
      found--;
    }
    int step = found >= 0 ? found : -found - 1;
    return step < capacities.length ? capacities[step] : UNBOUNDED;
  }

  /**
   * The knee of the curve: the capacity from which on more of it brings less than its share, 0 when
   * nothing hits at any. It is where the curve is farthest above the straight line from nothing to
   * its end (Satopää et al.: Finding a "Kneedle" in a Haystack, 2011).
   */
  public long kneeCapacity() {
    double most = 0;
    int last = capacities.length - 1;
    // Where nothing is above the line, all of it pays.
    long knee = last < 0 ? 0 : capacities[last];
    for (int step = 0; step <= last; step++) {
      double above =
          (double) tokens[step] / tokens[last] - (double) capacities[step] / capacities[last];
      if (above > most) {
        most = above;
        knee = capacities[step];
      }
    }
    return knee;
  }
}
