package ucm.cli.output;

import java.util.Arrays;

/** What repeated measurements of one thing came to; not a number where there are none. */
public record Spread(double median, double min, double max) {

  public static Spread of(double[] values) {
    if (values.length == 0) {
      return new Spread(Double.NaN, Double.NaN, Double.NaN);
    }
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    int half = sorted.length / 2;
    double median = sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    return new Spread(median, sorted[0], sorted[sorted.length - 1]);
  }

  /** The smallest value that at least this share of some does not exceed; 0 when there are none. */
  public static double quantile(double[] values, double share) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted.length == 0 ? 0 : sorted[Math.max(0, (int) Math.ceil(share * sorted.length) - 1)];
  }
}
