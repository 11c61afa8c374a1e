package ucm.metrics;

import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;
import ucm.metrics.MetricsConfig.Kind;

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
  private final PrometheusRegistry shown = new PrometheusRegistry();
  private volatile MetricsConfig visible;
  // Guarded by this.
  private final Map<String, Counter> counters = new HashMap<>();
  private final Map<String, Histogram> histograms = new HashMap<>();
  private final Map<String, Map<List<String>, DoubleSupplier>> gauges = new HashMap<>();

  /** A registry in which nothing is counted yet but the Java runtime. */
  public MetricsRegistry(MetricsConfig config) {
    this.config = config;
    visible = config;
    shown.register((MultiCollector) this::visible);
    showJava(scope("", ""));
  }

  /**
   * Where one part of an engine counts.
   *
   * @param model the label {@code model_name}
   * @param worker the label {@code worker_id}: a rank, or {@code scheduler}
   * @return the same instruments whenever the same labels are asked for
   */
  public StoreMetrics scope(String model, String worker) {
    return new Place(this, model, worker);
  }

  /**
   * Shows other metrics from now on: those that a configuration neither switches off nor leaves out. Names,
   * help and buckets stay.
   */
  public void show(MetricsConfig changed) {
    visible = changed;
  }

  private MetricSnapshots visible() {
    MetricsConfig now = visible;
    MetricSnapshots.Builder some = MetricSnapshots.builder();
    registry.scrape().stream()
        .filter(snapshot -> isVisible(now, snapshot))
        .forEach(some::metricSnapshot);
    return some.build();
  }

  private boolean isVisible(MetricsConfig by, MetricSnapshot snapshot) {
    Kind kind =
        switch (snapshot) {
          case CounterSnapshot _ -> Kind.COUNTER;
          case HistogramSnapshot _ -> Kind.HISTOGRAM;
          default -> Kind.GAUGE;
        };
    return by.exports(kind, snapshot.getMetadata().getName().substring(config.prefix().length()));
  }

  /** What a scrape reads. */
  PrometheusRegistry prometheus() {
    return shown;
  }

  /** What the Java runtime tells of itself: heap and garbage collection. */
  private static void showJava(StoreMetrics scope) {
    MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
    List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans();
    scope.gauge(
        "jvm_heap_used_bytes",
        "Bytes of the Java heap in use; blocks lie outside it.",
        () -> memory.getHeapMemoryUsage().getUsed());
    scope.gauge(
        "jvm_gc_collections",
        "Garbage collections of the Java heap since the process began.",
        () -> collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionCount).sum());
    scope.gauge(
        "jvm_gc_time_ms",
        "Time in those collections.",
        () -> collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionTime).sum());
  }

  /** Makes an instrument under its exported name; {@code none} when it is not to be seen, or cannot be. */
  private <T> T instrument(Kind kind, String given, T none, Function<String, T> make) {
    String name = MetricNames.exported(given);
    if (!config.exports(kind, name)) {
      return none;
    }
    synchronized (this) {
      try {
        return make.apply(name);
      } catch (IllegalArgumentException e) {
        LOG.warn("the {} {} is not exported: {}", kind.section(), given, e.getMessage());
        return none;
      }
    }
  }

  private Counter counter(String name, String help) {
    return Counter.builder()
        .name(config.prefix() + name)
        .help(config.help(name, help))
        .labelNames(LABELS)
        .withoutExemplars()
        .register(registry);
  }

  private Histogram histogram(String name, String help) {
    return Histogram.builder()
        .name(config.prefix() + name)
        .help(config.help(name, help))
        .labelNames(LABELS)
        .classicOnly()
        .classicUpperBounds(config.buckets(name))
        .withoutExemplars()
        .register(registry);
  }

  /** A gauge that is read at each scrape; gives its values by their labels, none at first. */
  private Map<List<String>, DoubleSupplier> gauge(String name, String help) {
    Map<List<String>, DoubleSupplier> values = new ConcurrentHashMap<>();
    GaugeWithCallback.builder()
        .name(config.prefix() + name)
        .help(config.help(name, help))
        .labelNames(LABELS)
        .callback(callback -> values.forEach((labels, value) -> read(callback, labels, value)))
        .register(registry);
    return values;
  }

  private static void read(
      GaugeWithCallback.Callback callback, List<String> labels, DoubleSupplier value) {
    double now;
    try {
      now = value.getAsDouble();
    } catch (RuntimeException e) {
      // Its store is closed, or a plugin's own fault: the other metrics are shown all the same.
      return;
    }
    callback.call(now, labels.toArray(String[]::new));
  }

  /** Where one part of an engine counts: the instruments with its labels. */
  private record Place(MetricsRegistry of, String model, String worker) implements StoreMetrics {

    @Override
    public StoreMetrics.Counter counter(String given, String help) {
      return of.instrument(
          Kind.COUNTER,
          given,
          NONE.counter(given, help),
          name ->
              of.counters
                      .computeIfAbsent(name, fresh -> of.counter(fresh, help))
                      .labelValues(model, worker)
                  ::inc);
    }

    @Override
    public StoreMetrics.Histogram histogram(String given, String help) {
      return of.instrument(
          Kind.HISTOGRAM,
          given,
          NONE.histogram(given, help),
          name ->
              of.histograms
                      .computeIfAbsent(name, fresh -> of.histogram(fresh, help))
                      .labelValues(model, worker)
                  ::observe);
    }

    @Override
    public void gauge(String given, String help, DoubleSupplier value) {
      var _ =
          of.instrument(
              Kind.GAUGE,
              given,
              false,
              name -> {
                // Instead of the one with the same labels, whose store has been closed.
                of.gauges
                    .computeIfAbsent(name, fresh -> of.gauge(fresh, help))
                    .put(List.of(model, worker), value);
                return true;
              });
      if (given.endsWith(HEALTH_STATE)) {
        gauge(
            given.substring(0, given.length() - HEALTH_STATE.length()) + "_store_health",
            "1 when the stage can be used, 0 while its breaker is open",
            () -> value.getAsDouble() == OPEN ? 0 : 1);
      }
    }
  }
}
