package ucm.server;

import java.util.Map;
import java.util.Set;
import ucm.pipeline.config.ConnectorSettings;

/** What of its process a daemon may change while it runs, by the program that starts it. Thread-safe. */
public interface ProcessControl {

  /** What is logged: debug, info, warning or error. */
  String logLevel();

  /**
   * Logs at another level from now on.
   *
   * @throws IllegalArgumentException when there is none of that name
   */
  void setLogLevel(String level);

  /**
   * Takes values of a configuration that concern the whole process.
   *
   * @param keys which; a key without a value goes back to what it was at the start. Others than {@code
   *     serve_log_level} and {@code metrics_config_path} are passed over
   * @return by key, why a value is not taken
   */
  Map<String, String> apply(ConnectorSettings settings, Set<String> keys);
}
