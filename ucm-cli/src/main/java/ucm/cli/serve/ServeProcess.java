package ucm.cli.serve;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.cli.runtime.LogSetup;
import ucm.metrics.MetricsConfig;
import ucm.metrics.MetricsRegistry;
import ucm.pipeline.config.ConnectorSettings;
import ucm.server.ProcessControl;

/**
 * The log and the metrics of the process that runs {@code ucm serve}.
 *
 * @param registry what Prometheus is shown; null when it is shown nothing
 */
record ServeProcess(@Nullable MetricsRegistry registry) implements ProcessControl {

  @Override
  public String logLevel() {
    return LogSetup.level();
  }

  @Override
  public void setLogLevel(String level) {
    LogSetup.setLevel(level);
  }

  @Override
  public Map<String, String> apply(ConnectorSettings settings, Set<String> keys) {
    Map<String, String> refused = new HashMap<>();
    if (keys.contains(ConnectorSettings.LOG_LEVEL.name())) {
      LogSetup.setLevel(settings.logLevel().orElse(""));
    }
    String metrics = ConnectorSettings.METRICS_CONFIG_PATH.name();
    if (keys.contains(metrics)) {
      show(settings.metricsConfigPath()).ifPresent(why -> refused.put(metrics, why));
    }
    return refused;
  }

  /** Shows the metrics that a file asks for; or says why not. */
  private Optional<String> show(Optional<Path> file) {
    if (registry == null) {
      return Optional.of("has no effect: the daemon shows no metrics without --metrics-port");
    }
    try {
      registry.show(file.map(MetricsConfig::read).orElseGet(MetricsConfig::defaults));
      return Optional.empty();
    } catch (StoreException e) {
      return Optional.of("is wrong: " + e.getMessage());
    }
  }
}
