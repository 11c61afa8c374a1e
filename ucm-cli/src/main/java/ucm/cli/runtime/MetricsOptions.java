package ucm.cli.runtime;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.api.StoreMetrics;
import ucm.cli.output.UsageException;
import ucm.metrics.MetricsConfig;
import ucm.metrics.MetricsEndpoint;
import ucm.metrics.MetricsRegistry;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.statistics.MetricsScopes;

/** Whether a command that runs long shows its metrics to Prometheus; the same option of all of them. */
public final class MetricsOptions {

  @Option(
      names = "--metrics-port",
      paramLabel = "PORT",
      description =
          "answer Prometheus at http://127.0.0.1:PORT/metrics while the command runs; 0 is any free"
              + " port (default: the port of the file that metrics_config_path names, else none)")
  private @Nullable Integer port;

  /** Checks a configuration, with the file that its {@code metrics_config_path} names. */
  public static ConfigReport check(UcmConfig config, StoreCatalog catalog) {
    return config.check(
        catalog,
        path -> {
          MetricsConfig _ = MetricsConfig.read(path);
        });
  }

  /** Begins to answer, when asked to by the option or by the configuration, and says where. */
  public MetricsScopes open(UcmConfig config, Cleanup cleanup, PrintWriter err) {
    UsageException.within("--metrics-port", port, 0, 65_535);
    Optional<Path> path = config.settings().metricsConfigPath();
    MetricsConfig file = path.map(MetricsConfig::read).orElse(MetricsConfig.defaults());
    OptionalInt chosen = port == null ? file.port() : OptionalInt.of(port);
    if (chosen.isEmpty()) {
      return (_, _) -> StoreMetrics.NONE;
    }
    MetricsRegistry registry = new MetricsRegistry(file);
    MetricsEndpoint endpoint =
        cleanup.add(MetricsEndpoint.start(registry, file.host(), chosen.getAsInt()));
    err.println("ucm: metrics at http://" + file.host() + ":" + endpoint.port() + "/metrics");
    return registry::scope;
  }
}
