package ucm.bench.measure;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;
import ucm.cli.output.Fields;
import ucm.cli.output.Spread;

/**
 * One speed of a store, and beside each value the machine's limit as it was a moment before or after.
 * The ratio is taken pair by pair, because the machine drifts. Used by one thread.
 *
 * @param limitName what the limit was measured with
 */
public record BenchMeasure(String name, String unit, String limitName, List<Pair> pairs) {
  public record Pair(double value, double limit) {}

  public BenchMeasure(String name, String unit, String limitName) {
    this(name, unit, limitName, new ArrayList<>());
  }

  public void add(double value, double limit) {
    pairs.add(new Pair(value, limit));
  }

  public Spread values() {
    return spread(Pair::value);
  }

  public Spread limits() {
    return spread(Pair::limit);
  }

  public Spread ratios() {
    return spread(pair -> pair.value / pair.limit);
  }

  private Spread spread(ToDoubleFunction<Pair> of) {
    return Spread.of(pairs.stream().mapToDouble(of).toArray());
  }

  public Fields data() {
    return spread(new Fields().with("name", name).with("unit", unit), values())
        .with("limit", spread(new Fields().with("name", limitName), limits()))
        .with("ratio", ratios());
  }

  public static Fields spread(Fields fields, Spread spread) {
    return fields
        .with("median", spread.median())
        .with("min", spread.min())
        .with("max", spread.max());
  }
}
