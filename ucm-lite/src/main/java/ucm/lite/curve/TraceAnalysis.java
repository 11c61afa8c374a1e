package ucm.lite.curve;

import java.util.Optional;
import ucm.lite.record.TouchOrder;

/**
 * The result of a {@link TraceAnalyzer}.
 *
 * @param summary totals; unique blocks and ideal hits are estimates unless {@link #exact()}
 * @param exactCurves the exact LRU curves; empty when not asked for, or when the trace has more
 *     distinct blocks than the options allow
 * @param sampledCurves the sampled LRU curves; empty when neither asked for nor needed
 */
public record TraceAnalysis(
    TraceSummary summary, Optional<Curves> exactCurves, Optional<Curves> sampledCurves) {

  /** The LRU curves of a trace in both touch orders. */
  public record Curves(LruCurve leafLast, LruCurve rootLast) {

    public LruCurve of(TouchOrder order) {
      return order == TouchOrder.LEAF_LAST ? leafLast : rootLast;
    }
  }

  /** Whether all numbers are exact, and none is estimated from a sample. */
  public boolean exact() {
    return exactCurves.isPresent();
  }

  /** The best LRU curve there is for a touch order: the exact one if it was computed. */
  public LruCurve lru(TouchOrder order) {
    return exactCurves.or(this::sampledCurves).orElseThrow().of(order);
  }
}
