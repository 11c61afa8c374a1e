package ucm.bench.measure;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.cli.output.Spread;

/**
 * One speed of a store, and beside each value the machine's limit as it was a moment before or after.
 * The ratio is taken pair by pair, because the machine drifts. Used by one thread.
 *
 * @param limitName what the limit was measured with
 */
public record BenchMeasure(String name, String unit, String limitName, List<Pair> pairs) {
  /** What was measured, and the limit beside it. */
  public record Pair(double value, double limit) {}

  public BenchMeasure(String name, String unit, String limitName) {
    this(name, unit, limitName, new ArrayList<>());
  }

  public void add(double value, double limit) {
    pairs.add(new Pair(value, limit));
  }

  public Spread values() {
    return Spread.of(pairs.stream().mapToDouble(Pair::value).toArray());
  }

  public Spread limits() {
    return Spread.of(pairs.stream().mapToDouble(Pair::limit).toArray());
  }

  /** Value by limit, of each pair. */
  public Spread ratios() {
    return Spread.of(pairs.stream().mapToDouble(pair -> pair.value / pair.limit).toArray());
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
