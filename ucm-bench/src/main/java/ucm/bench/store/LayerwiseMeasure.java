package ucm.bench.store;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;
import ucm.bench.measure.BenchMeasure;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.Spread;

/**
 * Steps of an engine that moves its KV cache layer by layer: how long they took, how long they waited
 * for each layer, and what the machine would have needed. Times in milliseconds. Used by one thread.
 *
 * @param limitName what the transfer of a layer was measured with
 * @param computeMillis of a layer, simulated
 */
public record LayerwiseMeasure(
    String name, String limitName, double computeMillis, List<Step> steps) {

  public static final Columns<LayerwiseMeasure> COLUMNS =
      new Columns<LayerwiseMeasure>()
          .both("WHAT", "name", LayerwiseMeasure::name)
          .both(
              "SIMULATED COMPUTE MS",
              "simulated_compute_ms",
              LayerwiseMeasure::computeMillis,
              Figures::plain)
          .both("STEP MS", "step_ms", measure -> measure.of(Step::millis), LayerwiseMeasure::median)
          .both(
              "IDEAL",
              "ideal_step_ms",
              measure -> measure.of(Step::ideal),
              LayerwiseMeasure::median)
          .both("RATIO", "ratio", LayerwiseMeasure::ratios, LayerwiseMeasure::median)
          .text("MIN", measure -> Figures.plain(measure.ratios().min()))
          .text("MAX", measure -> Figures.plain(measure.ratios().max()))
          .both(
              "WAIT A LAYER MS",
              "wait_per_layer_ms",
              measure -> Spread.of(measure.waits()),
              LayerwiseMeasure::median)
          .both(
              "P90",
              "wait_per_layer_p90_ms",
              measure -> Spread.quantile(measure.waits(), 0.9),
              Figures::plain)
          .both(
              "IDEAL WAIT",
              "ideal_wait_per_layer_ms",
              measure -> Math.max(0, measure.transfers().median() - measure.computeMillis),
              Figures::plain)
          .text("TRANSFER AT THE LIMIT MS", measure -> median(measure.transfers()))
          .data("limit_per_layer_ms", LayerwiseMeasure::limit);

  /** What one step took, would ideally have taken, and what the machine needs to move a layer. */
  @SuppressWarnings("ArrayRecordComponent") // Steps are never compared.
  record Step(double millis, double ideal, double transfer, double[] waits) {}

  LayerwiseMeasure(String name, String limitName, double computeMillis) {
    this(name, limitName, computeMillis, new ArrayList<>());
  }

  /** Adds a step, with its waits, its pauses as long as they really were, and the limit's milliseconds. */
  void add(double stepMillis, long[] waitNanos, long[] computeNanos, double transfer) {
    int last = waitNanos.length - 1;
    // The first transfer, or the last, overlaps with nothing.
    double ideal = transfer + computeNanos[last] / 1e6;
    for (int i = 0; i < last; i++) {
      ideal += Math.max(computeNanos[i] / 1e6, transfer);
    }
    double[] waits = Arrays.stream(waitNanos).mapToDouble(nanos -> nanos / 1e6).toArray();
    steps.add(new Step(stepMillis, ideal, transfer, waits));
  }

  private Spread of(ToDoubleFunction<Step> value) {
    return Spread.of(steps.stream().mapToDouble(value).toArray());
  }

  /** Ideal by measured, of each pair: 1 is the ideal. */
  private Spread ratios() {
    return of(step -> step.ideal / step.millis);
  }

  private Spread transfers() {
    return of(Step::transfer);
  }

  private double[] waits() {
    return steps.stream().flatMapToDouble(step -> Arrays.stream(step.waits)).toArray();
  }

  private Fields limit() {
    return BenchMeasure.spread(new Fields().with("name", limitName), transfers());
  }

  private static String median(Spread spread) {
    return Figures.plain(spread.median());
  }
}
