package ucm.lite;

import java.util.Arrays;

/**
 * Shows a visitor a small copy of a trace: of each request only the blocks that are in a sample, so
 * that a simulation of a cache that is smaller by the same rate stands for one of the full size
 * (Waldspurger et al.: Cache Modeling and Optimization using Miniature Simulations, USENIX ATC '17).
 * Memory and time shrink with the rate. A request keeps its time and its answer; its input is the
 * sampled blocks.
 *
 * <p>As in {@link Sampling}, what the sample stands for is corrected by the references there really
 * were: the difference comes from few very hot blocks being in the sample or not. Used by one
 * thread.
 */
public final class SampledRequests implements TraceVisitor {
  private static final int THRESHOLD_BITS = 24;

  private final TraceVisitor visitor;
  private final long threshold;
  private long references;
  private long sampledReferences;
  private long tokens;
  private long sampledTokens;
  private long[] packed = new long[128];

  /**
   * Creates a sample.
   *
   * @param rate share of the blocks, above 0 and at most 1
   * @param visitor is shown the small copy
   */
  public SampledRequests(double rate, TraceVisitor visitor) {
    this.threshold =
        Math.max(1, Math.round(Sampling.fixedRate(rate).rate() * (1 << THRESHOLD_BITS)));
    this.visitor = visitor;
  }

  @Override
  public void request(TraceRequest request) {
    int count = request.blockCount();
    if (2 * count > packed.length) {
      packed = new long[4 * count];
    }
    int sampled = 0;
    int kept = 0;
    for (int i = 0; i < count; i++) {
      long high = request.blockIdHigh(i);
      long low = request.blockIdLow(i);
      if (BlockIndex.mix(high, low) >>> (Long.SIZE - THRESHOLD_BITS) < threshold) {
        packed[2 * sampled] = high;
        packed[2 * sampled + 1] = low;
        sampled++;
        kept += request.prefixTokens(i + 1) - request.prefixTokens(i);
      }
    }
    references += count;
    tokens += request.prefixTokens(count);
    sampledReferences += sampled;
    sampledTokens += kept;
    visitor.request(
        new TraceRequest(
            request.timestampMillis(),
            request.requestId(),
            kept,
            request.outputTokens(),
            request.blockTokens(),
            Arrays.copyOf(packed, 2 * sampled)));
  }

  /**
   * Returns the share of the blocks that are in the sample.
   *
   * @return above 0, at most 1
   */
  public double rate() {
    return (double) threshold / (1 << THRESHOLD_BITS);
  }

  /**
   * Returns the capacity in the small copy that stands for one in the trace.
   *
   * @param capacityBlocks blocks, 0 or more
   * @return blocks; 1 at the least, unless nothing was asked for
   */
  public long scaledCapacity(long capacityBlocks) {
    return capacityBlocks == 0 ? 0 : Math.max(1, Math.round(capacityBlocks * rate()));
  }

  /**
   * Estimates the hits in the trace from those in the small copy.
   *
   * @param hits of a cache with the {@linkplain #scaledCapacity scaled} capacity, after the whole trace
   * @param capacityBlocks the capacity it stands for
   * @return the estimate; not negative, and no more than there is
   */
  public CacheHits estimate(CacheHits hits, long capacityBlocks) {
    if (capacityBlocks == 0) {
      return new CacheHits(0, 0, 0);
    }
    return new CacheHits(
        capacityBlocks,
        corrected(hits.hitBlocks(), references, sampledReferences),
        corrected(hits.hitTokens(), tokens, sampledTokens));
  }

  private long corrected(long hits, long all, long sampled) {
    double missing = all - sampled / rate();
    return Math.clamp(Math.round(hits / rate() + missing), 0, all);
  }
}
