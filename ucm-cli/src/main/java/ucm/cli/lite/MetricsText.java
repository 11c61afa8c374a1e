package ucm.cli.lite;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Metrics as a scrape prints them: Prometheus' text format, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats).
 */
final class MetricsText {

  private static final Pattern LINE =
      Pattern.compile(
          "([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(.*)\\})?[ \t]+(\\S+)(?:[ \t]+-?\\d+)?[ \t]*");
  private static final Pattern LABEL =
      Pattern.compile("([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\]|\\\\.)*)\"[ ,]*");

  private MetricsText() {}

  /** One value. */
  record Sample(String name, Map<String, String> labels, double value) {}

  /**
   * Reads all samples; throws an {@link IllegalArgumentException} at what is none, and no comment.
   */
  static List<Sample> parse(String text) {
    List<Sample> samples = new ArrayList<>();
    for (String line : text.lines().toList()) {
      if (line.isBlank() || line.startsWith("#")) {
        continue;
      }
      Matcher found = LINE.matcher(line);
      if (!found.matches()) {
        throw new IllegalArgumentException("a line that is no metric");
      }
      String labels = found.group(2);
      samples.add(
          new Sample(found.group(1), labels(labels == null ? "" : labels), number(found.group(3))));
    }
    return samples;
  }

  private static Map<String, String> labels(String text) {
    Map<String, String> labels = new TreeMap<>();
    Matcher label = LABEL.matcher(text);
    int end = 0;
    while (label.lookingAt()) {
      labels.put(label.group(1), unescaped(label.group(2)));
      end = label.end();
      label.region(end, text.length());
    }
    if (end != text.length()) {
      throw new IllegalArgumentException("a metric with damaged labels");
    }
    return labels;
  }

  private static String unescaped(String value) {
    StringBuilder plain = new StringBuilder();
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '\\' && i + 1 < value.length()) {
        c = value.charAt(++i);
        c = c == 'n' ? '\n' : c;
      }
      plain.append(c);
    }
    return plain.toString();
  }

  private static double number(String text) {
    return switch (text) {
      case "+Inf" -> Double.POSITIVE_INFINITY;
      case "-Inf" -> Double.NEGATIVE_INFINITY;
      default -> Double.parseDouble(text);
    };
  }
}
