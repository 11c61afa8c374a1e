package ucm.metrics;

import io.prometheus.metrics.model.snapshots.PrometheusNaming;
import java.util.List;
import java.util.Map;

/**
 * The names under which metrics are exported. Dashboards of the original find what they ask for: where
 * it counts the same under another name, that name is used.
 */
final class MetricNames {

  private static final String TOTAL = "_total";

  private static final Map<String, String> ORIGINAL =
      Map.of(
          "cache_miss_shards", "cache_load_backend_shards",
          "connector_load_failed_blocks", "connector_load_invalid_blocks");

  /** Of the stores that keep blocks in files, whose names follow the stage and an underscore. */
  private static final Map<String, String> ORIGINAL_OF_FILES =
      Map.of(
          "load_bytes", "s2h_bytes",
          "dump_bytes", "h2s_bytes",
          "lookup_blocks", "lookup_query_blocks",
          "used_bytes", "store_used_bytes",
          "capacity_bytes", "store_capacity_bytes",
          "health_probe_failures", "unhealthy_count");

  private static final List<String> STAGES_OF_FILES = List.of("posix_", "nfs_", "ds3fs_");

  private MetricNames() {}

  /** The exported name of a metric, without prefix; of a counter, without {@code _total}. */
  static String exported(String name) {
    String plain = withoutTotal(name);
    for (String stage : STAGES_OF_FILES) {
      String known =
          plain.startsWith(stage) ? ORIGINAL_OF_FILES.get(plain.substring(stage.length())) : null;
      if (known != null) {
        return stage + known;
      }
    }
    return ORIGINAL.getOrDefault(plain, PrometheusNaming.sanitizeMetricName(plain));
  }

  /** A name without {@code _total}, which Prometheus adds to counters. */
  static String withoutTotal(String name) {
    return name.endsWith(TOTAL) ? name.substring(0, name.length() - TOTAL.length()) : name;
  }
}
