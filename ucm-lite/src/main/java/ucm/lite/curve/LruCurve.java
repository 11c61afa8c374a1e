package ucm.lite.curve;

import java.util.Arrays;
import ucm.lite.record.TouchOrder;

/**
 * The hits of an LRU cache over a whole trace, for every capacity: exact, or estimated from a sample
 * of the blocks.
 *
 * <p>A step function: between two {@linkplain #stepCapacity(int) steps} nothing changes. Immutable
 * and safe to share.
 */
public final class LruCurve {
  /** A capacity that holds everything. */
  public static final long UNBOUNDED = Long.MAX_VALUE;

  private final TouchOrder order;
  private final double sampleRate;
  private final long[] capacities;
  private final long[] blocks;
  private final long[] tokens;

  private LruCurve(
      TouchOrder order, double sampleRate, long[] capacities, long[] blocks, long[] tokens) {
    this.order = order;
    this.sampleRate = sampleRate;
    this.capacities = capacities;
    this.blocks = blocks;
    this.tokens = tokens;
  }

  /** Sums up what hits from each capacity on; index 0 is not looked at. */
  public static LruCurve of(TouchOrder order, long[] blocksAt, long[] tokensAt) {
    int steps = 0;
    for (int capacity = 1; capacity < blocksAt.length; capacity++) {
      if (blocksAt[capacity] != 0) {
        steps++;
      }
    }
    LruCurve curve = new LruCurve(order, 1, new long[steps], new long[steps], new long[steps]);
    long blocks = 0;
    long tokens = 0;
    for (int capacity = 1, step = 0; step < steps; capacity++) {
      if (blocksAt[capacity] != 0) {
        blocks += blocksAt[capacity];
        tokens += tokensAt[capacity];
        curve.capacities[step] = capacity;
        curve.blocks[step] = blocks;
        curve.tokens[step++] = tokens;
      }
    }
    return curve;
  }

  /**
   * Sums up weighted hits. What is missing at the start is put at the smallest distance; as it may
   * be negative, the curve is kept from falling below nothing.
   */
  static LruCurve sampled(
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
        capacities[steps] = DistanceHistogram.end(bucket);
        blocks[steps] = blocksHere;
        tokens[steps++] = tokensHere;
        lastBlocks = blocksHere;
        lastTokens = tokensHere;
      }
    }
    return new LruCurve(
        order,
        sampleRate,
        Arrays.copyOf(capacities, steps),
        Arrays.copyOf(blocks, steps),
        Arrays.copyOf(tokens, steps));
  }

  /** The share of blocks looked at: 1 for an exact curve, less for an estimated one. */
  public double sampleRate() {
    return sampleRate;
  }

  /** The order in which the blocks of a request were touched. */
  public TouchOrder touchOrder() {
    return order;
  }

  /** Blocks hit by a cache of so many blocks, 0 or more; {@link #UNBOUNDED} for all. */
  public long hitBlocks(long capacityBlocks) {
    int step = stepFor(capacityBlocks);
    return step < 0 ? 0 : blocks[step];
  }

  /** Tokens hit by a cache of so many blocks, 0 or more; {@link #UNBOUNDED} for all. */
  public long hitTokens(long capacityBlocks) {
    int step = stepFor(capacityBlocks);
    return step < 0 ? 0 : tokens[step];
  }

  /** The hits of a cache of so many blocks, 0 or more; {@link #UNBOUNDED} for all. */
  public CacheHits at(long capacityBlocks) {
    return new CacheHits(capacityBlocks, hitBlocks(capacityBlocks), hitTokens(capacityBlocks));
  }

  /** The number of capacities at which the hits grow; 0 when nothing hits at any capacity. */
  public int stepCount() {
    return capacities.length;
  }

  /**
   * The capacity of a step in blocks: the smallest with these hits. It grows with the step, from 0
   * on.
   */
  public long stepCapacity(int step) {
    return capacities[step];
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

  /** Returns the last step at or below the capacity, or -1. */
  private int stepFor(long capacityBlocks) {
    if (capacityBlocks < 0) {
      throw new IllegalArgumentException(
          "capacityBlocks is " + capacityBlocks + ", must not be negative");
    }
    int found = Arrays.binarySearch(capacities, capacityBlocks);
    return found >= 0 ? found : -found - 2;
  }

  @Override
  public String toString() {
    return "LruCurve[%s, %s steps, %s blocks at most]"
        .formatted(order.key(), capacities.length, hitBlocks(UNBOUNDED));
  }
}
