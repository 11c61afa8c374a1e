package ucm.metrics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import ucm.api.StoreException;

/**
 * Which metrics are exported, under which names, and where: what the file says that {@code
 * metrics_config_path} names. The file is the original's ({@code metric_prefix}, and the lists {@code
 * counter}, {@code gauge} and {@code histogram} with names, documentation and buckets), with three
 * keys more: {@code port}, {@code host}, and {@code only_listed}. Does not change once it is read.
 */
public final class MetricsConfig {

  private static final int MAX_PORT = 65_535;
  // What the original needs and this has no use for.
  private static final Set<String> IGNORED =
      Set.of("log_interval", "multiproc_dir", "histogram_max_length");

  private static final Pattern PREFIX_FORM = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*|");

  // Buckets of names that the file does not list, by the end of the name, which says the unit.
  private static final double[] MILLIS = {
    0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000
  };
  private static final double[] GB_PER_SECOND = {
    0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128
  };
  private static final double[] SHARES = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  private static final double[] COUNTS = {
    0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000
  };

  /** The kinds of instruments, each with a section of the file; older files add an {@code s}. */
  enum Kind {
    COUNTER,
    GAUGE,
    HISTOGRAM;

    String section() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * A metric that the file lists.
   *
   * @param kind in which section it stands
   * @param documentation its help text; empty to keep the built-in one
   * @param buckets upper bounds of a histogram, ascending; empty to keep the built-in ones
   */
  record Listed(Kind kind, String documentation, List<Double> buckets) {}

  private final String source;
  private final List<String> problems = new ArrayList<>();
  private final Map<String, Listed> listed = new HashMap<>();
  private final Set<Kind> kinds = EnumSet.allOf(Kind.class);
  private String prefix = "ucm:";
  private String host = "127.0.0.1";
  private OptionalInt port = OptionalInt.empty();
  private boolean onlyListed;

  private MetricsConfig(String source) {
    this.source = source;
  }

  /** Everything, with the prefix {@code ucm:}, on the loopback interface; no port. */
  public static MetricsConfig defaults() {
    return new MetricsConfig("defaults");
  }

  /**
   * Reads a file.
   *
   * @throws StoreException when it cannot be read or has faults; all of them are in the message
   */
  public static MetricsConfig read(Path file) {
    String text;
    if (!Files.isRegularFile(file)) {
      throw new StoreException(
          "the metrics file %s is %s"
              .formatted(file, Files.exists(file) ? "no regular file" : "not there"));
    }
    try {
      text = Files.readString(file, StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new StoreException("the metrics file " + file + " cannot be read: " + e, e);
    }
    MetricsConfig read = new MetricsConfig(file.toString());
    read.parse(text);
    return read;
  }

  /** The address to listen on. */
  public String host() {
    return host;
  }

  /** The port to listen on, when the file names one; 0 is any free one. */
  public OptionalInt port() {
    return port;
  }

  String prefix() {
    return prefix;
  }

  /** Whether a metric is to be seen. */
  boolean exports(Kind kind, String name) {
    Listed found = listed.get(name);
    return kinds.contains(kind) && (!onlyListed || (found != null && found.kind() == kind));
  }

  /** The help text for a metric. */
  String help(String name, String otherwise) {
    Listed found = listed.get(name);
    return found == null || found.documentation().isEmpty() ? otherwise : found.documentation();
  }

  /** The buckets of a histogram. */
  double[] buckets(String name) {
    Listed found = listed.get(name);
    if (found != null && !found.buckets().isEmpty()) {
      return found.buckets().stream().mapToDouble(Double::doubleValue).toArray();
    }
    if (name.endsWith("_ms") || name.endsWith("_duration")) {
      return MILLIS;
    }
    if (name.endsWith("_gbps") || name.endsWith("_speed")) {
      return GB_PER_SECOND;
    }
    return name.endsWith("_rates") ? SHARES : COUNTS;
  }

  private void parse(String text) {
    for (Map.Entry<?, ?> entry : root(text).entrySet()) {
      key(String.valueOf(entry.getKey()), entry.getValue());
    }
    if (!problems.isEmpty()) {
      throw new StoreException(source + ": " + String.join("; ", problems));
    }
  }

  private Map<?, ?> root(String text) {
    try {
      Object root = new Load(LoadSettings.builder().setLabel(source).build()).loadFromString(text);
      if (root == null) {
        return Map.of();
      }
      if (root instanceof Map<?, ?> map) {
        return map;
      }
    } catch (YamlEngineException e) {
      throw new StoreException(source + " is no YAML: " + e.getMessage(), e);
    }
    throw new StoreException(
        source + ": expected keys such as metric_prefix and histogram at the top level");
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
        new Listed(kind, help == null ? "" : help.toString(), buckets));
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
