package ucm.cli.trace;

import java.util.ArrayList;
import java.util.List;
import ucm.cli.output.Figures;
import ucm.lite.curve.LruCurve;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceSummary;
import ucm.lite.record.TouchOrder;

/** Sentences about sizes, from the LRU curve alone. */
final class CurveAdvice {

  private static final int[] SHARES_OF_IDEAL = {50, 90, 99};

  private CurveAdvice() {}

  /** Reads advice from the curve; sizes are in bytes, too, where a model was named. */
  static List<String> of(TraceAnalysis analysis, long blockBytes) {
    TraceSummary summary = analysis.summary();
    LruCurve curve = analysis.lru(TouchOrder.LEAF_LAST);
    if (curve.stepCount() == 0) {
      return List.of("No prompt begins like an earlier one: a prefix cache would hit nothing.");
    }
    List<String> advice = new ArrayList<>();
    long knee = curve.kneeCapacity();
    advice.add(
        String.format(
            "The knee of the curve is at %s (hit rate %s): more than that brings less than its"
                + " share.",
            size(knee, summary, blockBytes),
            Figures.percent(summary.tokenHitRate(curve.hitTokens(knee)))));
    for (int share : SHARES_OF_IDEAL) {
      long most = curve.hitTokens(LruCurve.UNBOUNDED);
      long capacity = curve.smallestCapacity(Math.ceilDiv(most * share, 100));
      advice.add(
          share
              + "% of the ideal hit rate takes "
              + size(capacity, summary, blockBytes)
              + " under LRU.");
    }
    return advice;
  }

  private static String size(long blocks, TraceSummary summary, long blockBytes) {
    String tokens =
        Figures.grouped(blocks)
            + " blocks ("
            + Figures.fixed((double) blocks * summary.blockTokens() / 1e6, 2)
            + " M tokens)";
    return blockBytes == 0
        ? tokens
        : Figures.gigabytes((double) blocks * blockBytes) + " GB, " + tokens;
  }
}
