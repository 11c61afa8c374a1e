package ucm.pipeline.convert;

import java.util.ArrayList;
import java.util.List;
import ucm.pipeline.config.ConfigFinding;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.ConfigShape;

/** A configuration of {@code Cache|Ds3fs} that is being written. */
final class Ds3fsDraft {

  private static final String INDENT = "      ";

  private final List<String> header = new ArrayList<>();
  private final List<String> connector = new ArrayList<>();
  private final List<String> topLevel = new ArrayList<>();

  /** Adds a line of comment at the top. */
  void comment(String line) {
    header.add(line);
  }

  /** Adds a setting of the pipeline: a number, a flag, a text or a list of texts. */
  void set(String key, Object value) {
    connector.add(INDENT + key + ":" + text(value));
  }

  /** Adds a setting of the pipeline that needs an explanation. */
  void set(String key, Object value, String why) {
    connector.add(INDENT + "# " + printable(why));
    set(key, value);
  }

  /** Adds a setting of the whole. */
  void setTopLevel(String key, Object value) {
    topLevel.add(key + ":" + text(value));
  }

  /** The file. */
  String yaml(String source, ConfigReport report) {
    StringBuilder yaml = new StringBuilder(1024);
    line(yaml, "# Converted from " + printable(source));
    header.forEach(comment -> line(yaml, comment.isEmpty() ? "#" : "# " + printable(comment)));
    if (!report.findings().isEmpty()) {
      line(yaml, "#");
      line(yaml, "# Not taken over:");
      for (ConfigFinding finding : report.findings()) {
        line(yaml, "#  - " + printable(finding.key() + " " + finding.message()));
      }
    }
    line(yaml, "ucm_connectors:");
    line(yaml, "  - ucm_connector_name: \"" + ConfigShape.PIPELINE_STORE + "\"");
    line(yaml, "    ucm_connector_config:");
    line(yaml, INDENT + "store_pipeline: \"Cache|Ds3fs\"");
    connector.forEach(setting -> line(yaml, setting));
    topLevel.forEach(setting -> line(yaml, setting));
    return yaml.toString();
  }

  private static void line(StringBuilder yaml, String line) {
    yaml.append(line).append('\n');
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
