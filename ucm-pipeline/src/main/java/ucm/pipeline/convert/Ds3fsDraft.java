package ucm.pipeline.convert;

import java.util.ArrayList;
import java.util.List;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.convert.ConfigConversion.Converted;

/** A configuration of {@code Cache|Ds3fs} that is being written. */
final class Ds3fsDraft {

  private static final String INDENT = "      ";
  private static final String CONNECTOR =
      """
      ucm_connectors:
        - ucm_connector_name: "UcmPipelineStore"
          ucm_connector_config:
            store_pipeline: "Cache|Ds3fs"
      """;

  private final StringBuilder header = new StringBuilder();
  private final StringBuilder connector = new StringBuilder(CONNECTOR);
  private final StringBuilder topLevel = new StringBuilder();

  /** What is wrong, and what is not taken over. */
  final List<ConfigProblem> findings = new ArrayList<>();

  void error(ConfigOrigin at, String key, String message) {
    findings.add(ConfigProblem.error(at, key, message));
  }

  void warning(ConfigOrigin at, String key, String message) {
    findings.add(ConfigProblem.warning(at, key, message));
  }

  /** Reports a setting that is not taken over. */
  void leftOut(ConfigOrigin at, String key, String why) {
    warning(at, key, "is left out: " + why);
  }

  void comment(String line) {
    header.append(line.isEmpty() ? "#" : "# " + printable(line)).append('\n');
  }

  /** Adds a setting of the pipeline: a number, a flag, a text or a list of texts. */
  void set(String key, Object value) {
    connector.append(INDENT).append(key).append(':').append(text(value)).append('\n');
  }

  /** Adds a setting of the pipeline that needs an explanation. */
  void set(String key, Object value, String why) {
    connector.append(INDENT).append("# ").append(printable(why)).append('\n');
    set(key, value);
  }

  /** Adds a setting of the whole. */
  void setTopLevel(String key, Object value) {
    topLevel.append(key).append(':').append(text(value)).append('\n');
  }

  /** What was written, unless an error was found. */
  Converted finish(String source) {
    ConfigReport report = new ConfigReport(findings).requireNoErrors();
    if (!report.findings().isEmpty()) {
      comment("");
      comment("Not taken over:");
      for (ConfigProblem finding : report.findings()) {
        comment(" - " + finding.key() + " " + finding.message());
      }
    }
    String from = "# Converted from " + printable(source) + "\n";
    return new Converted(from + header + connector + topLevel, report);
  }

  /** A value with what separates it from its key. */
  private static String text(Object value) {
    return switch (value) {
      case String text -> " " + quoted(text);
      case List<?> list ->
          list.stream().map(item -> "\n" + INDENT + "  -" + text(item)).reduce("", String::concat);
      default -> " " + value;
    };
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder(text.length() + 2).append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (Character.isISOControl(c) || c == '\u2028' || c == '\u2029') {
        quoted.append("\\u%04x".formatted((int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }

  /** Text of others in a comment must not end its line. */
  private static String printable(String text) {
    return text.replaceAll("[\\p{Cntrl}\u0085\u2028\u2029]", "?");
  }
}
