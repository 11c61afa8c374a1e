package ucm.store.cache.transfer;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;

/** What is counted of the tasks of one direction, under the names of the original. Thread-safe. */
final class TaskMetrics {

  private static final double NANOS_PER_MS = 1e6;

  final Counter queueFull;
  private final Counter shards;
  private final Histogram millis;
  private final Histogram waitMillis;
  private final Histogram bandwidth;

  /**
   * Registers the instruments.
   *
   * @param direction {@code load} or {@code dump}
   */
  TaskMetrics(StoreMetrics metrics, String direction) {
    String prefix = "cache_" + direction;
    queueFull = metrics.counter(prefix + "_queue_full", "Tasks refused for want of room.");
    shards = metrics.counter(prefix + "_shards", "Shards of tasks that have ended.");
    millis =
        metrics.histogram(
            prefix + "_duration_ms", "From the submission of a task to its end (ms).");
    waitMillis =
        metrics.histogram(
            prefix + "_queue_wait_duration_ms",
            "From the submission of a task until its first shard is moved, or ends (ms).");
    bandwidth =
        metrics.histogram(
            prefix + "_bandwidth_gbps", "Bytes of a task in the time that it took (GB/s).");
  }

  /** A task has ended. */
  void ended(int count, long bytes, long waitNanos, long nanos) {
    shards.add(count);
    millis.record(nanos / NANOS_PER_MS);
    waitMillis.record(waitNanos / NANOS_PER_MS);
    bandwidth.record(bytes / (double) Math.max(1, nanos));
  }
}
