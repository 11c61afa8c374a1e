package ucm.store.cache.transfer;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;

/** What the store counts. */
final class CacheMetrics {

  final Counter loadBytes;
  final Counter dumpBytes;
  final Counter hitShards;
  final Counter joinedShards;
  final Counter missShards;
  final Counter expiredShards;
  final Counter evictions;
  final Counter nextFailures;
  final TaskMetrics loads;
  final TaskMetrics dumps;

  CacheMetrics(StoreMetrics metrics) {
    loadBytes = metrics.counter("cache_load_bytes", "Bytes copied to the engine.");
    dumpBytes = metrics.counter("cache_dump_bytes", "Bytes copied from the engine.");
    hitShards = metrics.counter("cache_hit_shards", "Shards loaded from the pool.");
    joinedShards =
        metrics.counter("cache_joined_shards", "Shards loaded from a read already under way.");
    missShards = metrics.counter("cache_miss_shards", "Shards loaded that were not in the pool.");
    expiredShards = metrics.counter("cache_expired_shards", "Shards not moved within timeout_ms.");
    evictions = metrics.counter("cache_evictions", "Shards evicted from the pool.");
    loads = new TaskMetrics(metrics, "load");
    dumps = new TaskMetrics(metrics, "dump");
    nextFailures =
        metrics.counter("cache_backend_failures", "Shards the next stage failed to read or write.");
  }

  /** Shows the pool. */
  void show(StoreMetrics metrics, CachePool pool) {
    metrics.gauge("cache_slots", "Slots of the pool.", pool.memory::slots);
    metrics.gauge(
        "cache_huge_page_bytes", "Bytes of the pool on pages of 2 MiB.", pool.memory::hugeBytes);
    metrics.gauge("cache_slots_in_use", "Slots that are not free.", pool.slots::inUse);
    metrics.gauge(
        "cache_slots_referenced",
        "Slots being filled, read or written on.",
        pool.slots::referenced);
  }
}
