package ucm.metrics;

import io.prometheus.metrics.model.snapshots.PrometheusNaming;
import java.util.Map;

/**
 * The names under which metrics are exported. Dashboards of the original find what they ask for: where
 * it counts the same under another name, that name is used.
 */
final class MetricNames {

  private static final String TOTAL = "_total";

  private static final Map<String, String> ORIGINAL =
      Map.ofEntries(
          Map.entry("cache_miss_shards", "cache_load_backend_shards"),
          Map.entry("connector_load_failed_blocks", "connector_load_invalid_blocks"),
          Map.entry("posix_load_bytes", "posix_s2h_bytes"),
          Map.entry("posix_dump_bytes", "posix_h2s_bytes"),
          Map.entry("posix_lookup_blocks", "posix_lookup_query_blocks"),
          Map.entry("posix_used_bytes", "posix_store_used_bytes"),
          Map.entry("posix_capacity_bytes", "posix_store_capacity_bytes"),
          Map.entry("posix_health_probe_failures", "posix_unhealthy_count"));

  private MetricNames() {}

  /** The exported name of a metric, without prefix; of a counter, without {@code _total}. */
  static String exported(String name) {
    String plain = withoutTotal(name);
    return ORIGINAL.getOrDefault(plain, PrometheusNaming.sanitizeMetricName(plain));
  }

  /** A name without {@code _total}, which Prometheus adds to counters. */
  static String withoutTotal(String name) {
    return name.endsWith(TOTAL) ? name.substring(0, name.length() - TOTAL.length()) : name;
  }
}
