package ucm.lite.curve;

/**
 * How far a sampled curve is from the exact one: differences of the token hit rate at capacities of
 * 1%, 2%, ... 100% of the distinct blocks.
 *
 * @param mean mean absolute difference, as a share of all prompt tokens
 * @param max largest absolute difference
 * @param maxAtBlocks the capacity of the largest difference
 */
public record CurveError(double mean, double max, long maxAtBlocks) {
  private static final int POINTS = 100;

  public static CurveError between(LruCurve exact, LruCurve sampled, TraceSummary summary) {
    double sum = 0;
    double max = 0;
    long maxAt = 0;
    for (int point = 1; point <= POINTS; point++) {
      long capacity = summary.uniqueBlocks() * point / POINTS;
      double difference =
          Math.abs(
              summary.tokenHitRate(sampled.hitTokens(capacity))
                  - summary.tokenHitRate(exact.hitTokens(capacity)));
      sum += difference;
      if (difference > max) {
        max = difference;
        maxAt = capacity;
      }
    }
    return new CurveError(sum / POINTS, max, maxAt);
  }
}
