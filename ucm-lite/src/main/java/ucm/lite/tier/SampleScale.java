package ucm.lite.tier;

import java.util.stream.LongStream;
import ucm.lite.curve.CacheHits;

/**
 * How a {@link TraceSample} stands for its trace: capacities shrink by the rate, and hits grow by it.
 *
 * <p>As in the sampled curve, what the sample stands for is corrected by the references there really
 * were: the difference comes from few very hot blocks, a system prompt for example, being in the sample
 * or not, and they are found in the nearest cache.
 *
 * @param rate share of the blocks in the sample, above 0 and at most 1
 * @param references blocks of all prompts of the trace, each counted as often as it occurs
 * @param sampledReferences those in the sample
 * @param tokens tokens of all those blocks
 * @param sampledTokens tokens of those in the sample
 */
public record SampleScale(
    double rate, long references, long sampledReferences, long tokens, long sampledTokens) {
  /**
   * The capacity in the small copy that stands for one in the trace: 1 at the least, unless nothing
   * was asked for.
   */
  public long capacity(long capacityBlocks) {
    return capacityBlocks == 0 ? 0 : Math.max(1, Math.round(capacityBlocks * rate));
  }

  /** The cluster with smaller tiers that stands for one in the small copy. */
  public TierPlan plan(TierPlan plan) {
    return plan.withCapacities(
        capacity(plan.hbmBlocks()),
        capacity(plan.dramBlocks()),
        capacity(plan.diskBlocks()),
        capacity(plan.storageBlocks()));
  }

  /**
   * Estimates the hits of a cache in the trace from those of one with the {@linkplain #capacity
   * scaled} capacity in the small copy; not negative, and no more than there is.
   */
  public CacheHits estimate(CacheHits hits, long capacityBlocks) {
    if (capacityBlocks == 0) {
      return new CacheHits(0, 0, 0);
    }
    return new CacheHits(
        capacityBlocks,
        scaled(references, sampledReferences, 0, hits.hitBlocks())[0],
        scaled(tokens, sampledTokens, 0, hits.hitTokens())[0]);
  }

  /**
   * Estimates what the tiers do for the trace from what the {@linkplain #plan smaller ones} do for
   * the small copy; blocks found and computed add up to those of the trace.
   */
  public TierResult estimate(TierResult small, TierPlan plan) {
    long[] capacities = plan.capacities();
    int nearest = 0;
    while (nearest < capacities.length && capacities[nearest] == 0) {
      nearest++;
    }
    long[] hits = {
      small.hbmBlocks(), small.dramBlocks(), small.diskBlocks(), small.storageBlocks()
    };
    long[] blocks = scaled(references, sampledReferences, nearest, hits);
    long[] hitTokens = {
      small.hbmTokens(), small.dramTokens(), small.diskTokens(), small.storageTokens()
    };
    long[] found = scaled(tokens, sampledTokens, nearest, hitTokens);
    return new TierResult(
        blocks[0],
        blocks[1],
        blocks[2],
        blocks[3],
        references - LongStream.of(blocks).sum(),
        found[0],
        found[1],
        found[2],
        found[3],
        Math.round(small.dramWrites() / rate),
        Math.round(small.diskWrites() / rate),
        Math.round(small.storageWrites() / rate),
        small.imbalance());
  }

  /**
   * Scales hits up. What is missing to all references counts as hits of the nearest cache; what is
   * too much is taken away there first.
   */
  private long[] scaled(long all, long sampled, int nearest, long... hits) {
    long[] estimates = new long[hits.length];
    double missing = all - sampled / rate;
    long left = all;
    for (int cache = nearest; cache < hits.length; cache++) {
      double wanted = hits[cache] / rate + missing;
      estimates[cache] = Math.clamp(Math.round(wanted), 0, left);
      left -= estimates[cache];
      missing = Math.min(0, wanted);
    }
    return estimates;
  }
}
