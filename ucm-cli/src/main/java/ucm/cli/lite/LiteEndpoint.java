package ucm.cli.lite;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;
import ucm.cli.output.UsageException;

/**
 * Engines in lite mode, asked through the metrics of their process: the same figures that they leave
 * in files. Metrics are found by their names without the prefix, which can be configured.
 */
final class LiteEndpoint {

  private static final int PATIENCE_MILLIS = 10_000;
  private static final int MAX_BYTES = 64 << 20;
  private static final int SHOWN_OF_ANSWER = 120;
  private static final long MILLION = 1_000_000;
  private static final Pattern LITE = Pattern.compile(".*?(lite_[a-z0-9_]+)");
  private static final Pattern POINT = Pattern.compile("lite_lru_hit_rate_([0-9]+)m_tokens");

  // Prometheus' text format, version 0.0.4: prometheus.io/docs/instrumenting/exposition_formats
  private static final Pattern LINE =
      Pattern.compile(
          "([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(.*)\\})?[ \t]+(\\S+)(?:[ \t]+-?\\d+)?[ \t]*");
  private static final Pattern LABEL =
      Pattern.compile("([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\]|\\\\.)*)\"[ ,]*");

  private static final Pattern ESCAPED = Pattern.compile("\\\\(.)");

  record Sample(String name, Map<String, String> labels, double value) {}

  private final URI url;

  LiteEndpoint(String given) {
    try {
      url = new URI(given);
      String scheme = String.valueOf(url.getScheme()).toLowerCase(Locale.ROOT);
      if (!List.of("http", "https").contains(scheme) || url.getHost() == null) {
        throw new URISyntaxException(given, "no address of a web server");
      }
    } catch (URISyntaxException e) {
      throw new UsageException(
          "--url is the address of an engine's metrics, such as http://127.0.0.1:9464/metrics;"
              + " found "
              + given);
    }
  }

  /** Asks once; one object for each engine in lite mode, as in their files. At least one. */
  List<ObjectNode> engines() {
    Map<Map<String, String>, Map<String, Double>> values = new LinkedHashMap<>();
    for (Sample sample : samples()) {
      Matcher name = LITE.matcher(sample.name());
      if (name.matches()) {
        values
            .computeIfAbsent(sample.labels(), _ -> new TreeMap<>())
            .put(name.group(1), sample.value());
      }
    }
    // Other processes may count something whose name ends like this.
    values.values().removeIf(gauges -> !gauges.containsKey("lite_requests"));
    if (values.isEmpty()) {
      throw failed(
          "shows no engine in lite mode: set use_lite: true in its configuration, or ask the"
              + " process of another engine",
          null);
    }
    return values.entrySet().stream()
        .map(entry -> engine(entry.getKey(), entry.getValue()))
        .toList();
  }

  private ObjectNode engine(Map<String, String> labels, Map<String, Double> gauges) {
    ObjectNode engine = JsonNodeFactory.instance.objectNode();
    engine.put("instance", labels.getOrDefault("worker_id", ""));
    engine.put("model", labels.getOrDefault("model_name", ""));
    engine.put("url", url.toString());
    engine.put("running", true);
    engine.put("state", "running");
    engine.put("updated", Instant.now().truncatedTo(ChronoUnit.SECONDS).toString());
    engine.put("block_tokens", (long) value(gauges, "lite_block_tokens"));
    engine.put("requests", (long) value(gauges, "lite_requests"));
    engine.put("blocks", (long) value(gauges, "lite_blocks"));
    engine.put("hbm_blocks", (long) value(gauges, "lite_hbm_blocks"));
    engine.put("external_hit_rate", value(gauges, "lite_hit_rate"));
    engine.put("unique_blocks", (long) value(gauges, "lite_unique_blocks"));
    engine.put("sample_rate", value(gauges, "lite_sample_rate"));
    engine.put("ideal_token_hit_rate", value(gauges, "lite_ideal_hit_rate"));
    engine.put("knee_tokens", (long) value(gauges, "lite_knee_tokens"));
    Map<Long, Double> curve = new TreeMap<>();
    gauges.forEach(
        (name, value) -> {
          Matcher point = POINT.matcher(name);
          if (point.matches()) {
            curve.put(Long.parseLong(point.group(1)) * MILLION, value);
          }
        });
    ArrayNode lru = engine.putArray("lru");
    curve.forEach(
        (capacity, hitRate) ->
            lru.addObject().put("capacity_tokens", capacity).put("token_hit_rate", hitRate));
    return engine;
  }

  private double value(Map<String, Double> gauges, String name) {
    Double value = gauges.get(name);
    if (value == null) {
      throw failed(
          String.format(
              "shows lite mode, but not %s: the file of metrics_config_path hides "
                  + "it (only_listed, enabled_metrics), or the engine is of another "
                  + "version",
              name),
          null);
    }
    return value;
  }

  private List<Sample> samples() {
    String text = text();
    try {
      return parse(text);
    } catch (IllegalArgumentException e) {
      String begin = text.strip().lines().findFirst().orElse("");
      throw failed(
          "answers, but not with metrics of Prometheus; its answer begins with \""
              + begin.substring(0, Math.min(begin.length(), SHOWN_OF_ANSWER))
              + "\"",
          e);
    }
  }

  private String text() {
    try {
      HttpURLConnection http = (HttpURLConnection) url.toURL().openConnection();
      http.setConnectTimeout(PATIENCE_MILLIS);
      http.setReadTimeout(PATIENCE_MILLIS);
      http.setRequestProperty("Accept", "text/plain; version=0.0.4");
      int status = http.getResponseCode();
      if (status != HttpURLConnection.HTTP_OK) {
        throw failed("answers with HTTP status " + status + ": metrics are at /metrics", null);
      }
      try (InputStream in = http.getInputStream()) {
        return new String(in.readNBytes(MAX_BYTES), StandardCharsets.UTF_8);
      }
    } catch (IOException | IllegalArgumentException e) {
      String why = "cannot be reached (" + e.getMessage() + ")";
      throw failed(why + ": is an engine running there that shows its metrics?", e);
    }
  }

  private UncheckedIOException failed(String what, @Nullable Exception cause) {
    return new UncheckedIOException(url + " " + what, new IOException(cause));
  }

  /** Reads a scrape; throws an {@link IllegalArgumentException} at what is no metric and no comment. */
  static List<Sample> parse(String text) {
    return text.lines()
        .filter(line -> !line.isBlank() && !line.startsWith("#"))
        .map(LiteEndpoint::sample)
        .toList();
  }

  private static String plain(MatchResult escaped) {
    String found = escaped.group(1);
    return found.equals("n") ? "\n" : Matcher.quoteReplacement(found);
  }

  private static Sample sample(String line) {
    Matcher found = LINE.matcher(line);
    if (!found.matches()) {
      throw new IllegalArgumentException("a line that is no metric");
    }
    String text = found.group(2) == null ? "" : found.group(2);
    Map<String, String> labels = new TreeMap<>();
    Matcher label = LABEL.matcher(text);
    while (label.lookingAt()) {
      labels.put(label.group(1), ESCAPED.matcher(label.group(2)).replaceAll(LiteEndpoint::plain));
      label.region(label.end(), text.length());
    }
    if (label.regionStart() != text.length()) {
      throw new IllegalArgumentException("a metric with damaged labels");
    }
    // As Java writes it, but for the end.
    return new Sample(
        found.group(1), labels, Double.parseDouble(found.group(3).replace("Inf", "Infinity")));
  }
}
