package ucm.lite.insight;

import java.util.List;
import ucm.lite.curve.Quantiles;
import ucm.lite.record.RecordedTrace;

/**
 * How the prompts of a trace relate to each other in time. Times are in seconds.
 *
 * @param sessions conversations, found from the blocks alone: a prompt that goes on where an earlier
 *     one ended belongs to it
 * @param largestSession requests of the longest session
 * @param reusedSessions sessions of two requests or more
 * @param sessionGaps between consecutive requests of a session
 * @param blockGaps between consecutive references to a block by different requests
 * @param lifetimes how long after a request some block that it brought was last used by another one;
 *     of requests that were used again
 * @param requestsNeverReused requests that brought blocks which no other request used
 * @param blockLifetimes from the first to the last use of blocks that were used again
 * @param blocksNeverReused blocks that only one request used
 * @param timeBins the three distributions of times in the same bins, up to the longest time; empty
 *     when there is none
 * @param hotPrefixes the prefixes that save most tokens, most first
 */
public record TraceInsights(
    long sessions,
    long largestSession,
    long reusedSessions,
    Quantiles sessionGaps,
    Quantiles blockGaps,
    Quantiles lifetimes,
    long requestsNeverReused,
    Quantiles blockLifetimes,
    long blocksNeverReused,
    List<TimeBin> timeBins,
    List<HotPrefix> hotPrefixes) {

  public TraceInsights {
    timeBins = List.copyOf(timeBins);
    hotPrefixes = List.copyOf(hotPrefixes);
  }

  /** Looks at a whole trace. Memory: about 40 bytes a distinct block and 20 a request. */
  public static TraceInsights of(RecordedTrace trace) throws InterruptedException {
    InsightsCollector collector = new InsightsCollector(trace);
    trace.feed(collector);
    return collector.result();
  }
}
