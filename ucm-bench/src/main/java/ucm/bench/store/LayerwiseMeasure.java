package ucm.bench.store;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.cli.output.Spread;

/**
 * Steps of an engine that moves its KV cache layer by layer: how long they took, how long they waited
 * for each layer, and what the machine would have needed. Times in milliseconds. Used by one thread.
 */
public final class LayerwiseMeasure {

  private final String name;
  private final String limitName;
  private final double computeMillis;
  private final List<Double> steps = new ArrayList<>();
  private final List<Double> ideals = new ArrayList<>();
  private final List<Double> transfers = new ArrayList<>();
  private double[] waits = new double[0];

  /**
   * Nothing yet.
   *
   * @param limitName what the transfer of a layer was measured with
   * @param computeMillis of a layer, simulated
   */
  LayerwiseMeasure(String name, String limitName, double computeMillis) {
    this.name = name;
    this.limitName = limitName;
    this.computeMillis = computeMillis;
  }

  /**
   * Adds a step.
   *
   * @param waitNanos for each layer
   * @param computeNanos of each layer, as long as the pauses really were
   * @param transferMillis what the machine needs to move a layer
   */
  void add(double stepMillis, long[] waitNanos, long[] computeNanos, double transferMillis) {
    int layers = waitNanos.length;
    steps.add(stepMillis);
    transfers.add(transferMillis);
    // The first transfer, or the last, overlaps with nothing.
    double ideal = transferMillis + computeNanos[layers - 1] / 1e6;
    for (int i = 0; i < layers - 1; i++) {
      ideal += Math.max(computeNanos[i] / 1e6, transferMillis);
    }
    ideals.add(ideal);
    int before = waits.length;
    waits = Arrays.copyOf(waits, before + layers);
    for (int i = 0; i < layers; i++) {
      waits[before + i] = waitNanos[i] / 1e6;
    }
  }

  public String name() {
    return name;
  }

  String limitName() {
    return limitName;
  }

  public double computeMillis() {
    return computeMillis;
  }

  public Spread steps() {
    return spread(steps);
  }

  /** The time of a step when each layer takes the longer of compute and transfer. */
  public Spread ideals() {
    return spread(ideals);
  }

  /** What the machine needs to move a layer. */
  public Spread transfers() {
    return spread(transfers);
  }

  /** Ideal by measured, of each pair: 1 is the ideal. */
  public Spread ratios() {
    double[] ratios = new double[steps.size()];
    for (int i = 0; i < ratios.length; i++) {
      ratios[i] = ideals.get(i) / steps.get(i);
    }
    return Spread.of(ratios);
  }

  /** The wait for a layer; its maximum is often that for the first one. */
  public Spread waits() {
    return Spread.of(waits);
  }

  /** The wait that nine of ten layers do not exceed. */
  public double slowWait() {
    double[] sorted = waits.clone();
    Arrays.sort(sorted);
    return sorted.length == 0 ? Double.NaN : sorted[sorted.length * 9 / 10];
  }

  /** The wait for a layer in the ideal step, the first one aside. */
  public double idealWait() {
    return Math.max(0, transfers().median() - computeMillis);
  }

  /** For JSON. */
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("name", name);
    data.put("simulated_compute_ms", computeMillis);
    data.put("step_ms", steps().data());
    data.put("ideal_step_ms", ideals().data());
    data.put("ratio", ratios().data());
    data.put("wait_per_layer_ms", waits().data());
    data.put("wait_per_layer_p90_ms", slowWait());
    data.put("ideal_wait_per_layer_ms", idealWait());
    Map<String, Object> limit = new LinkedHashMap<>();
    limit.put("name", limitName);
    limit.putAll(transfers().data());
    data.put("limit_per_layer_ms", limit);
    return data;
  }

  private static Spread spread(List<Double> values) {
    return Spread.of(values.stream().mapToDouble(Double::doubleValue).toArray());
  }
}
