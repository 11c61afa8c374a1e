package ucm.lite.insight;

import java.util.List;
import ucm.lite.curve.Quantiles;

/** How prompts relate to each other in time, from all blocks or from a sample. Times are in seconds. */
public sealed interface Insights permits TraceInsights, SampledInsights {
  /** The share of the blocks that was looked at. */
  double sampleRate();

  /** Conversations, found from the blocks alone: a prompt goes on where an earlier one of it ended. */
  long sessions();

  /** Between consecutive requests of a session. */
  Quantiles sessionGaps();

  /** Between consecutive references to a block by different requests. */
  Quantiles blockGaps();

  /** From the first to the last use of blocks that were used again. */
  Quantiles blockLifetimes();

  /** Blocks that only one request used. */
  long blocksNeverReused();

  /** The prefixes that save most tokens, most first. */
  List<HotPrefix> hotPrefixes();
}
