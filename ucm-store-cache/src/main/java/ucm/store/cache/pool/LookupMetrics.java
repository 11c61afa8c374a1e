package ucm.store.cache.pool;

import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreMetrics.Histogram;

/** What is counted of look-ups, under the names of the original. Thread-safe. */
public final class LookupMetrics {

  private static final double NANOS_PER_MS = 1e6;

  private final Counter hits;
  private final Counter misses;
  private final Histogram millis;
  private volatile double lastRate;

  public LookupMetrics(StoreMetrics metrics) {
    hits = metrics.counter("cache_lookup_hit_blocks", "Blocks looked up and found in the pool.");
    misses =
        metrics.counter(
            "cache_lookup_miss_blocks", "Blocks looked up that the pool did not answer for.");
    millis =
        metrics.histogram(
            "cache_lookup_duration_ms", "Time a look-up spent here, not in the next stage (ms).");
    metrics.gauge(
        "cache_lookup_hit_rate",
        "Share of the blocks of the last look-up that the pool had.",
        () -> lastRate);
  }

  /** A look-up has ended. */
  void looked(int found, int absent, long nanos) {
    hits.add(found);
    misses.add(absent);
    millis.record(nanos / NANOS_PER_MS);
    if (found + absent > 0) {
      lastRate = (double) found / (found + absent);
    }
  }
}
