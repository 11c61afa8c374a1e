package ucm.metrics;

import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.DoubleSupplier;

/** A gauge with a value for each set of labels, read at each scrape. Thread-safe. */
final class LabelledGauge {

  private final Map<List<String>, DoubleSupplier> values = new ConcurrentHashMap<>();

  private LabelledGauge() {}

  /**
   * Registers a gauge without values.
   *
   * @throws IllegalArgumentException when the name is taken, or cannot be that of a gauge
   */
  static LabelledGauge register(
      PrometheusRegistry registry, String name, String help, String... labels) {
    LabelledGauge gauge = new LabelledGauge();
    GaugeWithCallback.builder()
        .name(name)
        .help(help)
        .labelNames(labels)
        .callback(gauge::read)
        .register(registry);
    return gauge;
  }

  /** Shows a value, instead of the one with the same labels, whose store has been closed. */
  void show(List<String> labels, DoubleSupplier value) {
    values.put(labels, value);
  }

  private void read(GaugeWithCallback.Callback callback) {
    values.forEach(
        (labels, value) -> {
          double now;
          try {
            now = value.getAsDouble();
          } catch (RuntimeException e) {
            // Its store is closed, or a plugin's own fault: the other metrics are shown all the
            // same.
            return;
          }
          callback.call(now, labels.toArray(String[]::new));
        });
  }
}
