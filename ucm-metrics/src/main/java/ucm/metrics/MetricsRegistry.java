package ucm.metrics;

import io.prometheus.metrics.core.datapoints.CounterDataPoint;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.HashMap;
import java.util.Map;
import java.util.function.DoubleSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;

/**
 * What is counted in a process, for Prometheus. Stores and connectors count in a {@link #scope}; a
 * {@link MetricsEndpoint} shows it. Thread-safe; counting allocates nothing once it is compiled.
 *
 * <p>Every metric has the labels {@code model_name} and {@code worker_id}, as dashboards of the
 * original expect. A name that cannot be exported (a plugin's that is taken by another kind of metric)
 * is logged, and counts nothing.
 */
public final class MetricsRegistry {

  private static final Logger LOG = LoggerFactory.getLogger(MetricsRegistry.class);
  private static final String[] LABELS = {"model_name", "worker_id"};
  // A stage's worst breaker, 0 closed, 1 half-open, 2 open; the original shows 1 or 0 instead.
  private static final String HEALTH_STATE = "_health_state";
  private static final double OPEN = 2;

  private final MetricsConfig config;
  private final PrometheusRegistry registry = new PrometheusRegistry();
  // Guarded by this.
  private final Map<String, Counter> counters = new HashMap<>();
  private final Map<String, Histogram> histograms = new HashMap<>();
  private final Map<String, LabelledGauge> gauges = new HashMap<>();

  /** A registry in which nothing is counted yet but the Java runtime. */
  public MetricsRegistry(MetricsConfig config) {
    this.config = config;
    JavaMetrics.show(scope("", ""));
  }

  /**
   * Where one part of an engine counts.
   *
   * @param model the label {@code model_name}
   * @param worker the label {@code worker_id}: a rank, or {@code scheduler}
   * @return the same instruments whenever the same labels are asked for
   */
  public StoreMetrics scope(String model, String worker) {
    return new Place(model, worker);
  }

  /** What a scrape reads. */
  PrometheusRegistry prometheus() {
    return registry;
  }

  private StoreMetrics.Counter counter(String given, String help, String[] labels) {
    String name = MetricNames.exported(given);
    if (!config.exports(MetricKind.COUNTER, name)) {
      return StoreMetrics.NONE.counter(given, help);
    }
    synchronized (this) {
      try {
        Counter counter = counters.get(name);
        if (counter == null) {
          counter =
              Counter.builder()
                  .name(config.prefix() + name)
                  .help(config.help(name, help))
                  .labelNames(LABELS)
                  .withoutExemplars()
                  .register(registry);
          counters.put(name, counter);
        }
        CounterDataPoint point = counter.labelValues(labels);
        return point::inc;
      } catch (IllegalArgumentException e) {
        LOG.warn("the counter {} is not exported: {}", given, e.getMessage());
        return StoreMetrics.NONE.counter(given, help);
      }
    }
  }

  private StoreMetrics.Histogram histogram(String given, String help, String[] labels) {
    String name = MetricNames.exported(given);
    if (!config.exports(MetricKind.HISTOGRAM, name)) {
      return StoreMetrics.NONE.histogram(given, help);
    }
    synchronized (this) {
      try {
        Histogram histogram = histograms.get(name);
        if (histogram == null) {
          histogram =
              Histogram.builder()
                  .name(config.prefix() + name)
                  .help(config.help(name, help))
                  .labelNames(LABELS)
                  .classicOnly()
                  .classicUpperBounds(config.buckets(name))
                  .withoutExemplars()
                  .register(registry);
          histograms.put(name, histogram);
        }
        DistributionDataPoint point = histogram.labelValues(labels);
        return point::observe;
      } catch (IllegalArgumentException e) {
        LOG.warn("the histogram {} is not exported: {}", given, e.getMessage());
        return StoreMetrics.NONE.histogram(given, help);
      }
    }
  }

  private void gauge(String given, String help, DoubleSupplier value, String[] labels) {
    String name = MetricNames.exported(given);
    if (!config.exports(MetricKind.GAUGE, name)) {
      return;
    }
    synchronized (this) {
      try {
        LabelledGauge gauge = gauges.get(name);
        if (gauge == null) {
          gauge =
              LabelledGauge.register(
                  registry, config.prefix() + name, config.help(name, help), LABELS);
          gauges.put(name, gauge);
        }
        gauge.show(labels, value);
      } catch (IllegalArgumentException e) {
        LOG.warn("the gauge {} is not exported: {}", given, e.getMessage());
      }
    }
  }

  private final class Place implements StoreMetrics {

    private final String[] labels;

    Place(String model, String worker) {
      this.labels = new String[] {model, worker};
    }

    @Override
    public StoreMetrics.Counter counter(String name, String help) {
      return MetricsRegistry.this.counter(name, help, labels);
    }

    @Override
    public StoreMetrics.Histogram histogram(String name, String help) {
      return MetricsRegistry.this.histogram(name, help, labels);
    }

    @Override
    public void gauge(String name, String help, DoubleSupplier value) {
      MetricsRegistry.this.gauge(name, help, value, labels);
      if (name.endsWith(HEALTH_STATE)) {
        String stage = name.substring(0, name.length() - HEALTH_STATE.length());
        MetricsRegistry.this.gauge(
            stage + "_store_health",
            "1 when the stage can be used, 0 while its breaker is open",
            () -> value.getAsDouble() == OPEN ? 0 : 1,
            labels);
      }
    }
  }
}
