package ucm.store.file.config;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Histogram;

/** What is counted of the tasks of one direction, under the names of the original. Thread-safe. */
public record TaskMetrics(Histogram millis, Histogram waitMillis, Histogram bandwidth) {

  private static final double NANOS_PER_MS = 1e6;

  static TaskMetrics of(StoreMetrics metrics, boolean isDump) {
    String prefix = isDump ? "dump" : "load";
    return new TaskMetrics(
        metrics.histogram(
            prefix + "_task_duration_ms", "From the submission of a task to its end (ms)."),
        metrics.histogram(
            prefix + "_queue_wait_duration_ms",
            "From the submission of a task until a worker takes it (ms)."),
        metrics.histogram(
            isDump ? "h2s_bandwidth_gbps" : "s2h_bandwidth_gbps",
            "Bytes of a task in the time that it took (GB/s)."));
  }

  /** A task has ended. */
  public void ended(long bytes, long waitNanos, long nanos) {
    millis.record(nanos / NANOS_PER_MS);
    waitMillis.record(waitNanos / NANOS_PER_MS);
    bandwidth.record(bytes / (double) Math.max(1, nanos));
  }
}
