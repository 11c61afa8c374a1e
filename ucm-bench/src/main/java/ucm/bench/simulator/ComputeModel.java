package ucm.bench.simulator;

import java.util.Locale;
import ucm.lite.tier.KvModel;

/**
 * How long a step of the engine computes: <em>simulated compute</em>. Nothing of it was measured here.
 *
 * <p>A step takes as long as the prefill of its tokens, and at least {@code decodeNanos} when a request of
 * it generates, as decoding is bound by reading the weights. Immutable.
 */
public record ComputeModel(String name, Prefill prefill, long decodeNanos) {

  /** Computes in no time; for filling a store. */
  public static final ComputeModel FREE = new ComputeModel("none", (from, to) -> 0, 0);

  private static final double NANOS_PER_MILLI = 1e6;
  private static final double NANOS_PER_SECOND = 1e9;

  /** Nanoseconds for tokens {@code from} to {@code to} of a prompt. */
  @FunctionalInterface
  interface Prefill {
    double nanos(long from, long to);
  }

  /** The same time for each token, and a least time of a step that generates. */
  public static ComputeModel measured(double millisPerToken, double decodeMillis) {
    return new ComputeModel(
        String.format(Locale.ROOT, "%s ms a token, as given", millisPerToken),
        (from, to) -> (to - from) * millisPerToken * NANOS_PER_MILLI,
        nanos(decodeMillis));
  }

  /**
   * Operations by operations a second of all GPUs of the engine, utilization included: {@link
   * KvModel#prefillOperations}.
   */
  public static ComputeModel operations(
      KvModel model, double operationsPerSecond, String where, double decodeMillis) {
    return new ComputeModel(
        "the operations of " + model.name() + " on " + where,
        (from, to) -> model.prefillOperations(from, to) / operationsPerSecond * NANOS_PER_SECOND,
        nanos(decodeMillis));
  }

  private static long nanos(double millis) {
    return Math.round(millis * NANOS_PER_MILLI);
  }

  /** How long a step computes, in nanoseconds. */
  long stepNanos(Batch batch) {
    double sum = 0;
    boolean decodes = false;
    for (Batch.Part part : batch.parts()) {
      sum += prefill.nanos(part.from(), part.to());
      decodes |= part.decodes();
    }
    return Math.max(Math.round(sum), decodes ? decodeNanos : 0);
  }

  /** What the times come from, for people. */
  @Override
  public String toString() {
    return name
        + (decodeNanos == 0
            ? ""
            : String.format(
                Locale.ROOT,
                ", at least %s ms a step that generates",
                decodeNanos / NANOS_PER_MILLI));
  }
}
