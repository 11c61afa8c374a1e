package ucm.store.cache.transfer;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;

/** What the store counts, under the names of the original. Thread-safe. */
final class CacheMetrics {

  private static final double NANOS_PER_MS = 1e6;

  final Counter loadBytes;
  final Counter dumpBytes;
  final Counter hitShards;
  final Counter joinedShards;
  final Counter missShards;
  final Counter expiredShards;
  final Counter evictions;
  final Counter nextFailures;

  private final Tasks loads;
  private final Tasks dumps;

  CacheMetrics(StoreMetrics metrics) {
    loadBytes = metrics.counter("cache_load_bytes", "Bytes copied to the engine.");
    dumpBytes = metrics.counter("cache_dump_bytes", "Bytes copied from the engine.");
    hitShards = metrics.counter("cache_hit_shards", "Shards loaded from the pool.");
    joinedShards =
        metrics.counter("cache_joined_shards", "Shards loaded from a read already under way.");
    missShards = metrics.counter("cache_miss_shards", "Shards loaded that were not in the pool.");
    expiredShards = metrics.counter("cache_expired_shards", "Shards not moved within timeout_ms.");
    evictions = metrics.counter("cache_evictions", "Shards evicted from the pool.");
    loads = tasks(metrics, "cache_load");
    dumps = tasks(metrics, "cache_dump");
    nextFailures =
        metrics.counter("cache_backend_failures", "Shards the next stage failed to read or write.");
  }

  private static Tasks tasks(StoreMetrics metrics, String prefix) {
    return new Tasks(
        metrics.counter(prefix + "_queue_full", "Tasks refused for want of room."),
        metrics.counter(prefix + "_shards", "Shards of tasks that have ended."),
        metrics.histogram(
            prefix + "_duration_ms", "From the submission of a task to its end (ms)."),
        metrics.histogram(
            prefix + "_queue_wait_duration_ms",
            "From the submission of a task until its first shard is moved, or ends (ms)."),
        metrics.histogram(
            prefix + "_bandwidth_gbps", "Bytes of a task in the time that it took (GB/s)."));
  }

  /** What is counted of the tasks of one direction. */
  record Tasks(
      Counter queueFull,
      Counter shards,
      Histogram millis,
      Histogram waitMillis,
      Histogram bandwidth) {

    /** A task has ended. */
    void ended(int count, long bytes, long waitNanos, long nanos) {
      shards.add(count);
      millis.record(nanos / NANOS_PER_MS);
      waitMillis.record(waitNanos / NANOS_PER_MS);
      bandwidth.record(bytes / (double) Math.max(1, nanos));
    }
  }

  /** What is counted of loads, or of dumps. */
  Tasks tasks(boolean isDump) {
    return isDump ? dumps : loads;
  }

  /** Shows the pool. */
  void show(StoreMetrics metrics, CachePool pool) {
    metrics.gauge("cache_slots", "Slots of the pool.", pool.slots::limit);
    metrics.gauge(
        "cache_huge_page_bytes", "Bytes of the pool on pages of 2 MiB.", pool.memory::hugeBytes);
    metrics.gauge("cache_slots_in_use", "Slots that are not free.", pool.slots::inUse);
    metrics.gauge(
        "cache_slots_referenced",
        "Slots being filled, read or written on.",
        pool.slots::referenced);
  }
}
