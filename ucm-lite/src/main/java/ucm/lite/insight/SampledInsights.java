package ucm.lite.insight;

import java.util.List;
import ucm.lite.curve.Quantiles;

/**
 * How the prompts of a trace relate to each other in time, estimated from a sample of the blocks:
 * what of {@link TraceInsights} such a sample can tell. Times are in seconds; counts are scaled up to
 * the trace, but for the requests of a hot prefix, which are counted.
 *
 * @param sampleRate share of the blocks in the sample at the end
 * @param sessions conversations
 * @param sessionGaps between consecutive requests of a session
 * @param blockGaps between consecutive references to a block by different requests
 * @param blockLifetimes from the first to the last use of blocks that were used again
 * @param blocksNeverReused blocks that only one request used
 * @param hotPrefixes of the prefixes that end with a sampled block, those that save most tokens
 */
public record SampledInsights(
    double sampleRate,
    long sessions,
    Quantiles sessionGaps,
    Quantiles blockGaps,
    Quantiles blockLifetimes,
    long blocksNeverReused,
    List<HotPrefix> hotPrefixes)
    implements Insights {

  public SampledInsights {
    hotPrefixes = List.copyOf(hotPrefixes);
  }
}
