/**
 * The core of the Prometheus Java client and its HTTP server with a descriptor of its own; the published jars have none,
 * and jlink takes no automatic module. The protocol-buffer format and the tracers are left out: the
 * client looks for them by name and does without.
 */
module io.prometheus.metrics {
  requires java.logging;
  requires jdk.httpserver;

  exports io.prometheus.metrics.config;
  exports io.prometheus.metrics.core.datapoints;
  exports io.prometheus.metrics.core.metrics;
  exports io.prometheus.metrics.exporter.httpserver;
  exports io.prometheus.metrics.expositionformats;
  exports io.prometheus.metrics.model.registry;
  exports io.prometheus.metrics.model.snapshots;
}
