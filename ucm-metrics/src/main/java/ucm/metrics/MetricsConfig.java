package ucm.metrics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import ucm.api.StoreException;

/**
 * Which metrics are exported, under which names, and where: what the file says that {@code
 * metrics_config_path} names. The file is the original's ({@code metric_prefix}, and the lists {@code
 * counter}, {@code gauge} and {@code histogram} with names, documentation and buckets), with three
 * keys more: {@code port}, {@code host}, and {@code only_listed}. Immutable.
 */
public final class MetricsConfig {

  static final String PREFIX = "ucm:";
  static final String LOOPBACK = "127.0.0.1";
  private static final Pattern PREFIX_FORM = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*|");

  private final String prefix;
  private final String host;
  private final OptionalInt port;
  private final boolean onlyListed;
  private final Set<MetricKind> kinds;
  private final Map<String, ListedMetric> listed;

  MetricsConfig(
      String prefix,
      String host,
      OptionalInt port,
      boolean onlyListed,
      Set<MetricKind> kinds,
      Map<String, ListedMetric> listed) {
    this.prefix = prefix;
    this.host = host;
    this.port = port;
    this.onlyListed = onlyListed;
    this.kinds = Set.copyOf(kinds);
    this.listed = Map.copyOf(listed);
  }

  /** Everything, with the prefix {@code ucm:}, on the loopback interface; no port. */
  public static MetricsConfig defaults() {
    return new MetricsConfig(
        PREFIX, LOOPBACK, OptionalInt.empty(), false, Set.of(MetricKind.values()), Map.of());
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
          "metrics_config_path names %s, which is %s"
              .formatted(file, Files.exists(file) ? "no regular file" : "not there"));
    }
    try {
      text = Files.readString(file, StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new StoreException(
          "metrics_config_path names " + file + ", which cannot be read: " + e, e);
    }
    return new MetricsYaml(file.toString()).parse(text);
  }

  static boolean isPrefix(String text) {
    return PREFIX_FORM.matcher(text).matches();
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
  boolean exports(MetricKind kind, String name) {
    return kinds.contains(kind) && (!onlyListed || isListed(kind, name));
  }

  private boolean isListed(MetricKind kind, String name) {
    ListedMetric found = listed.get(name);
    return found != null && found.kind() == kind;
  }

  /** The help text for a metric. */
  String help(String name, String otherwise) {
    ListedMetric found = listed.get(name);
    return found == null || found.documentation().isEmpty() ? otherwise : found.documentation();
  }

  /** The buckets of a histogram. */
  double[] buckets(String name) {
    ListedMetric found = listed.get(name);
    return found == null || found.buckets().isEmpty()
        ? Buckets.of(name)
        : found.buckets().stream().mapToDouble(Double::doubleValue).toArray();
  }
}
