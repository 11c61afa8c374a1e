package ucm.bench.measure;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import ucm.cli.output.Spread;

/**
 * One speed of a store, and beside each value the machine's limit as it was a moment before or after.
 * The ratio is taken pair by pair, because the machine drifts. Used by one thread.
 */
public final class BenchMeasure {

  private final String name;
  private final String unit;
  private final String limitName;
  private double[] values = new double[8];
  private double[] limits = new double[8];
  private int count;

  public BenchMeasure(String name, String unit, String limitName) {
    this.name = name;
    this.unit = unit;
    this.limitName = limitName;
  }

  public void add(double value, double limit) {
    if (count == values.length) {
      values = Arrays.copyOf(values, 2 * count);
      limits = Arrays.copyOf(limits, 2 * count);
    }
    values[count] = value;
    limits[count++] = limit;
  }

  public String name() {
    return name;
  }

  String unit() {
    return unit;
  }

  /** What the limit was measured with. */
  String limitName() {
    return limitName;
  }

  public Spread values() {
    return Spread.of(Arrays.copyOf(values, count));
  }

  public Spread limits() {
    return Spread.of(Arrays.copyOf(limits, count));
  }

  /** Value by limit, of each pair. */
  public Spread ratios() {
    double[] ratios = new double[count];
    for (int i = 0; i < count; i++) {
      ratios[i] = values[i] / limits[i];
    }
    return Spread.of(ratios);
  }

  /** For JSON. */
  public Map<String, Object> data() {
    Map<String, Object> limit = new LinkedHashMap<>();
    limit.put("name", limitName);
    limit.putAll(limits().data());
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("name", name);
    data.put("unit", unit);
    data.putAll(values().data());
    data.put("limit", limit);
    data.put("ratio", ratios().data());
    return data;
  }
}
