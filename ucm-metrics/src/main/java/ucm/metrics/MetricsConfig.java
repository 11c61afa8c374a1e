package ucm.metrics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import ucm.api.StoreException;

/**
 * Which metrics are exported, under which names, and where: what the file says that {@code
 * metrics_config_path} names. The file is the original's ({@code metric_prefix}, and the lists {@code
 * counter}, {@code gauge} and {@code histogram} with names, documentation and buckets), with three
 * keys more: {@code port}, {@code host}, and {@code only_listed}. Immutable.
 */
public final class MetricsConfig {

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

  private final MetricsYaml file;

  MetricsConfig(MetricsYaml file) {
    this.file = file;
  }

  /** Everything, with the prefix {@code ucm:}, on the loopback interface; no port. */
  public static MetricsConfig defaults() {
    return new MetricsConfig(new MetricsYaml("defaults"));
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

  /** The address to listen on. */
  public String host() {
    return file.host;
  }

  /** The port to listen on, when the file names one; 0 is any free one. */
  public OptionalInt port() {
    return file.port;
  }

  String prefix() {
    return file.prefix;
  }

  /** Whether a metric is to be seen. */
  boolean exports(Kind kind, String name) {
    Listed found = file.listed.get(name);
    return file.kinds.contains(kind)
        && (!file.onlyListed || (found != null && found.kind() == kind));
  }

  /** The help text for a metric. */
  String help(String name, String otherwise) {
    Listed found = file.listed.get(name);
    return found == null || found.documentation().isEmpty() ? otherwise : found.documentation();
  }

  /** The buckets of a histogram. */
  double[] buckets(String name) {
    Listed found = file.listed.get(name);
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
}
