/**
 * Shows what stores and connectors count to Prometheus: {@link ucm.metrics.MetricsRegistry} is where
 * they count, {@link ucm.metrics.MetricsEndpoint} answers scrapes, and {@link
 * ucm.metrics.MetricsConfig} reads the file that {@code metrics_config_path} names.
 */
@org.jspecify.annotations.NullMarked
module ucm.metrics {
  requires io.prometheus.metrics;
  requires java.management;
  requires jdk.httpserver;
  requires static org.jspecify;
  requires org.slf4j;
  requires org.snakeyaml.engine;
  requires transitive ucm.api;

  exports ucm.metrics;
}
