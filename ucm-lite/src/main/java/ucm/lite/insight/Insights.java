package ucm.lite.insight;

import java.util.List;
import ucm.lite.curve.Quantiles;

/** How the prompts of a trace relate to each other in time, from all blocks or from a sample. */
public sealed interface Insights permits TraceInsights, SampledInsights {
  /** The share of the blocks that was looked at. */
  double sampleRate();

  long sessions();

  Quantiles sessionGaps();

  Quantiles blockGaps();

  Quantiles blockLifetimes();

  long blocksNeverReused();

  List<HotPrefix> hotPrefixes();
}
