package ucm.pipeline.config;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigProblem;

/**
 * Everything found in one check of a configuration. Immutable.
 *
 * @param findings without doubles, sorted by position; long texts are cut
 */
public record ConfigReport(List<ConfigProblem> findings) {

  private static final Comparator<ConfigProblem> BY_PLACE =
      Comparator.comparing(ConfigProblem::origin)
          .thenComparing(ConfigProblem::severity)
          .thenComparing(ConfigProblem::key);

  private static final int MOST_SHOWN = 1200;
  private static final int KEPT = 500;

  public ConfigReport {
    findings =
        findings.stream()
            .map(finding -> finding.shortened(ConfigReport::cut))
            .distinct()
            .sorted(BY_PLACE)
            .toList();
  }

  /** A text of a message, or its begin and its end when it is long: it may be a whole file. */
  public static String cut(@Nullable String found) {
    String text = String.valueOf(found);
    int end = text.length() - KEPT;
    return text.length() <= MOST_SHOWN
        ? text
        : "%s ... (%s characters left out) ... %s"
            .formatted(text.substring(0, KEPT), end - KEPT, text.substring(end));
  }

  /** Whether the configuration cannot be used. */
  public boolean hasErrors() {
    return errors() > 0;
  }

  /**
   * This report.
   *
   * @throws ConfigException when it has errors
   */
  public ConfigReport requireNoErrors() {
    if (hasErrors()) {
      throw new ConfigException(this);
    }
    return this;
  }

  public int errors() {
    return (int) findings.stream().filter(ConfigProblem::isError).count();
  }

  public int warnings() {
    return findings.size() - errors();
  }

  /** One line per finding, then how many there are; no line end after the last. */
  public String text() {
    return findings.stream().map(finding -> finding + "\n").collect(Collectors.joining())
        + "%s error%s, %s warning%s"
            .formatted(errors(), errors() == 1 ? "" : "s", warnings(), warnings() == 1 ? "" : "s");
  }

  /** The same as plain maps, lists, texts and numbers, for JSON. */
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("errors", errors());
    data.put("warnings", warnings());
    data.put("findings", findings.stream().map(ConfigReport::data).toList());
    return data;
  }

  private static Map<String, Object> data(ConfigProblem finding) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("severity", finding.isError() ? "error" : "warning");
    data.put("source", finding.origin().source());
    data.put("line", finding.origin().line());
    data.put("column", finding.origin().column());
    data.put("key", finding.key());
    data.put("stages", finding.stages());
    data.put("message", finding.message());
    data.put("value", finding.value());
    data.put("allowed", finding.allowed());
    data.put("nearest", finding.nearest());
    return data;
  }

  @Override
  public String toString() {
    return text();
  }
}
