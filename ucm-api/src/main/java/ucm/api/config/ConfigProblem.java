package ucm.api.config;

import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Something wrong, or worth knowing, in a configuration. A store records one with {@link
 * StoreConfig#reject}; what a report adds to it (stages, the value found) is empty then.
 *
 * @param severity whether the configuration can be used all the same
 * @param key the key it is about; empty when it is about the whole
 * @param message what was found, what is allowed, what to do
 * @param origin where it was found
 * @param stages the stages that say so
 * @param value the value found, or empty
 * @param allowed which values are allowed, or empty
 * @param nearest the known key or name nearest to an unknown one, or empty
 */
public record ConfigProblem(
    Severity severity,
    String key,
    String message,
    ConfigOrigin origin,
    List<String> stages,
    String value,
    String allowed,
    String nearest) {

  /** How bad it is. */
  public enum Severity {
    /** The configuration is not used. */
    ERROR,
    /** It is used, and the user is told. */
    WARNING
  }

  /** Copies the list. */
  public ConfigProblem {
    stages = List.copyOf(stages);
  }

  /** A problem of which no more is known. */
  public ConfigProblem(Severity severity, String key, String message, ConfigOrigin origin) {
    this(severity, key, message, origin, List.of(), "", "", "");
  }

  /** A problem with which the configuration cannot be used. */
  public static ConfigProblem error(ConfigOrigin origin, String key, String message) {
    return new ConfigProblem(Severity.ERROR, key, message, origin);
  }

  /** A problem with which it can. */
  public static ConfigProblem warning(ConfigOrigin origin, String key, String message) {
    return new ConfigProblem(Severity.WARNING, key, message, origin);
  }

  /** The same, found elsewhere. */
  public ConfigProblem at(ConfigOrigin position) {
    return new ConfigProblem(severity, key, message, position, stages, value, allowed, nearest);
  }

  /** The same, said by these stages. */
  public ConfigProblem in(List<String> names) {
    return new ConfigProblem(severity, key, message, origin, names, value, allowed, nearest);
  }

  /** The same, with the value found and what is allowed. */
  public ConfigProblem about(String found, String allowed) {
    return new ConfigProblem(severity, key, message, origin, stages, found, allowed, nearest);
  }

  /** The same, with the known name nearest to what was found. */
  public ConfigProblem near(String name) {
    return new ConfigProblem(severity, key, message, origin, stages, value, allowed, name);
  }

  /** The same, with message and value as {@code cut} makes them. */
  public ConfigProblem shortened(UnaryOperator<String> cut) {
    String text = cut.apply(message);
    return new ConfigProblem(
        severity, key, text, origin, stages, cut.apply(value), allowed, nearest);
  }

  /** Whether the configuration cannot be used. */
  public boolean isError() {
    return severity == Severity.ERROR;
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
