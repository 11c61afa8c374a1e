package ucm.api.config;

/**
 * Something wrong, or worth knowing, in a configuration.
 *
 * @param severity whether the configuration can be used all the same
 * @param key the key it is about
 * @param message what was found, what is allowed, what to do
 * @param origin where it was found
 */
public record ConfigProblem(Severity severity, String key, String message, ConfigOrigin origin) {

  /** How bad it is. */
  public enum Severity {
    /** The configuration is not used. */
    ERROR,
    /** It is used, and the user is told. */
    WARNING
  }

  /** Whether the configuration cannot be used. */
  public boolean isError() {
    return severity == Severity.ERROR;
  }

  @Override
  public String toString() {
    return origin + ": " + (isError() ? "error: " : "warning: ") + key + ": " + message;
  }
}
