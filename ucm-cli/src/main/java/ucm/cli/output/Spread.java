package ucm.cli.output;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

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

  /** For JSON. */
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("median", median);
    data.put("min", min);
    data.put("max", max);
    return data;
  }
}
