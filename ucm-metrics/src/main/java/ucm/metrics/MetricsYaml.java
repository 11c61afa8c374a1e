package ucm.metrics;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import ucm.api.StoreException;
import ucm.metrics.MetricsConfig.Kind;

/** Reads the metrics file of the original and reports all its faults at once; holds the defaults. */
final class MetricsYaml {

  private static final int MAX_PORT = 65_535;
  // What the original needs and this has no use for.
  private static final Set<String> IGNORED =
      Set.of("log_interval", "multiproc_dir", "histogram_max_length");

  private static final Pattern PREFIX_FORM = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*|");

  private final String file;
  private final List<String> problems = new ArrayList<>();
  final Map<String, MetricsConfig.Listed> listed = new LinkedHashMap<>();
  final Set<Kind> kinds = EnumSet.allOf(Kind.class);
  String prefix = "ucm:";
  String host = "127.0.0.1";
  OptionalInt port = OptionalInt.empty();
  boolean onlyListed;

  MetricsYaml(String file) {
    this.file = file;
  }

  MetricsConfig parse(String text) {
    for (Map.Entry<?, ?> entry : root(text).entrySet()) {
      key(String.valueOf(entry.getKey()), entry.getValue());
    }
    if (!problems.isEmpty()) {
      throw new StoreException(file + ": " + String.join("; ", problems));
    }
    return new MetricsConfig(this);
  }

  private Map<?, ?> root(String text) {
    try {
      Object root = new Load(LoadSettings.builder().setLabel(file).build()).loadFromString(text);
      if (root == null) {
        return Map.of();
      }
      if (root instanceof Map<?, ?> map) {
        return map;
      }
    } catch (YamlEngineException e) {
      throw new StoreException(file + " is no YAML: " + e.getMessage(), e);
    }
    throw new StoreException(
        file + ": expected keys such as metric_prefix and histogram at the top level");
  }

  private void key(String key, @Nullable Object value) {
    for (Kind kind : Kind.values()) {
      if (key.equals(kind.section()) || key.equals(kind.section() + "s")) {
        section(key, kind, value);
        return;
      }
    }
    switch (key) {
      case "metric_prefix" -> prefix(value);
      case "host" -> host = String.valueOf(value);
      case "port" -> port(value);
      case "only_listed" -> onlyListed = flag(key, value);
      case "enabled_metrics" -> enabled(value);
      default -> {
        if (!IGNORED.contains(key)) {
          problems.add(
              key
                  + " is no key of a metrics file; known are metric_prefix, host, port,"
                  + " only_listed, enabled_metrics, counter, gauge and histogram");
        }
      }
    }
  }

  private void prefix(@Nullable Object value) {
    String found = value == null ? "" : value.toString();
    prefix = found;
    if (!PREFIX_FORM.matcher(found).matches()) {
      problems.add(
          ("metric_prefix is '%s'; a metric begins with a letter, _ or :, and goes on with those"
                  + " and digits")
              .formatted(found));
    }
  }

  private void port(@Nullable Object value) {
    if (value instanceof Integer number && number >= 0 && number <= MAX_PORT) {
      port = OptionalInt.of(number);
    } else {
      problems.add("port is " + value + "; it must be 0 (any free one) to " + MAX_PORT);
    }
  }

  private boolean flag(String key, @Nullable Object value) {
    if (value instanceof Boolean flag) {
      return flag;
    }
    problems.add(key + " is " + value + "; it must be true or false");
    return true;
  }

  private void enabled(@Nullable Object value) {
    if (!(value instanceof Map<?, ?> map)) {
      problems.add("enabled_metrics must have counters, gauges and histograms, true or false each");
      return;
    }
    for (Kind kind : Kind.values()) {
      String name = kind.section() + "s";
      if (map.containsKey(name) && !flag("enabled_metrics." + name, map.get(name))) {
        kinds.remove(kind);
      }
    }
  }

  private void section(String section, Kind kind, @Nullable Object value) {
    if (value == null) {
      return;
    }
    if (!(value instanceof List<?> entries)) {
      problems.add(section + " must be a list of metrics");
      return;
    }
    for (Object entry : entries) {
      if (entry instanceof Map<?, ?> metric && metric.get("name") instanceof String name) {
        metric(section, kind, name, metric);
      } else {
        problems.add(section + ": an entry has no name: " + entry);
      }
    }
  }

  private void metric(String section, Kind kind, String name, Map<?, ?> metric) {
    Object help = metric.get("documentation");
    List<Double> buckets = buckets(section + "." + name, metric.get("buckets"));
    listed.put(
        MetricNames.withoutTotal(name),
        new MetricsConfig.Listed(kind, help == null ? "" : help.toString(), buckets));
  }

  private List<Double> buckets(String where, @Nullable Object value) {
    if (value == null) {
      return List.of();
    }
    List<Double> buckets = new ArrayList<>();
    for (Object bound : value instanceof List<?> list ? list : List.of()) {
      double next = bound instanceof Number number ? number.doubleValue() : Double.NaN;
      // Written so that it also catches what is no number.
      if (!Double.isFinite(next) || !(buckets.isEmpty() || next > buckets.getLast())) {
        problems.add(
            where + ": buckets must be numbers, each larger than the one before: " + value);
        return List.of();
      }
      buckets.add(next);
    }
    if (buckets.isEmpty()) {
      problems.add(where + ": buckets must be a list of numbers; found " + value);
    }
    return buckets;
  }
}
