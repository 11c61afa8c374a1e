package ucm.pipeline.config;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.ConfigProblem.Severity;

/**
 * One thing that is wrong with a configuration, or worth knowing about it.
 *
 * @param severity whether the configuration can be used all the same
 * @param origin where
 * @param key the key it is about, empty when it is about the whole file
 * @param stages the stages that say so, empty when it is not about a stage
 * @param message what was found, what is allowed, what to do
 * @param value the value found, or empty
 * @param allowed which values are allowed, or empty
 * @param nearest the known key nearest to an unknown one, or empty
 */
public record ConfigFinding(
    Severity severity,
    ConfigOrigin origin,
    String key,
    List<String> stages,
    String message,
    String value,
    String allowed,
    String nearest) {

  /** A finding. */
  public ConfigFinding {
    message = LongText.cut(message);
    value = LongText.cut(value);
  }

  static final Comparator<ConfigFinding> BY_PLACE =
      Comparator.comparing(ConfigFinding::origin)
          .thenComparing(ConfigFinding::severity)
          .thenComparing(ConfigFinding::key);

  public static ConfigFinding error(ConfigOrigin origin, String key, String message) {
    return new ConfigFinding(Severity.ERROR, origin, key, List.of(), message, "", "", "");
  }

  public static ConfigFinding warning(ConfigOrigin origin, String key, String message) {
    return new ConfigFinding(Severity.WARNING, origin, key, List.of(), message, "", "", "");
  }

  /** What a stage found. */
  public static ConfigFinding of(ConfigProblem problem, List<String> stages) {
    return new ConfigFinding(
        problem.severity(), problem.origin(), problem.key(), stages, problem.message(), "", "", "");
  }

  ConfigFinding at(ConfigOrigin position) {
    return new ConfigFinding(severity, position, key, stages, message, value, allowed, nearest);
  }

  ConfigFinding in(List<String> newStages) {
    return new ConfigFinding(severity, origin, key, newStages, message, value, allowed, nearest);
  }

  ConfigFinding about(String newValue, String newAllowed) {
    return new ConfigFinding(severity, origin, key, stages, message, newValue, newAllowed, nearest);
  }

  ConfigFinding near(String name) {
    return new ConfigFinding(severity, origin, key, stages, message, value, allowed, name);
  }

  /** Whether the configuration cannot be used. */
  public boolean isError() {
    return severity == Severity.ERROR;
  }

  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("severity", isError() ? "error" : "warning");
    data.put("source", origin.source());
    data.put("line", origin.line());
    data.put("column", origin.column());
    data.put("key", key);
    data.put("stages", stages);
    data.put("message", message);
    data.put("value", value);
    data.put("allowed", allowed);
    data.put("nearest", nearest);
    return data;
  }

  /** One line: position, severity, key, message, and the stages in brackets. */
  @Override
  public String toString() {
    return origin
        + (isError() ? ": error: " : ": warning: ")
        + (key.isEmpty() ? "" : key + ": ")
        + message
        + (stages.isEmpty() ? "" : " [" + String.join(", ", stages) + "]");
  }
}
