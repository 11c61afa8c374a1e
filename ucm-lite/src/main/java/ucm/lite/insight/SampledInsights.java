package ucm.lite.insight;

import java.util.List;
import ucm.lite.curve.Quantiles;

/**
 * How the prompts of a trace relate to each other in time, estimated from a sample of the blocks:
 * what of {@link TraceInsights} such a sample can tell. Times are in seconds; counts are scaled up to
 * the trace, but for the requests of a hot prefix, which are counted; those end with a sampled block.
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
