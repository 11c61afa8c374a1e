package ucm.server;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import ucm.api.StoreMetrics;
import ucm.cli.Subcommand;
import ucm.cli.output.ByteSize;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.PluginsOption;
import ucm.metrics.MetricsConfig;
import ucm.metrics.MetricsEndpoint;
import ucm.metrics.MetricsRegistry;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.server.client.Daemon;
import ucm.server.session.Engines;

/** {@code ucm serve}: the daemon for engines in other processes. */
@Command(
    name = "serve",
    description = {
      "Serves engines of other languages, such as vLLM with the Python package ucm: one daemon a"
          + " node and user, for all engines and ranks there. Each engine brings its YAML file.",
      "Runs in the foreground. SIGTERM and Ctrl-C end it when all that engines have saved is"
          + " stored. A client that finds no daemon starts one, with --idle-exit."
    },
    subcommands = ServeStatusCommand.class)
public final class ServeCommand implements Subcommand {

  private static final int MAX_PORT = 65_535;

  @Spec private CommandSpec spec;
  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description =
          "the UNIX domain socket, in a directory that only this user may enter (default:"
              + " UCM_SOCKET, else $XDG_RUNTIME_DIR/ucm/ucm.sock, else /tmp/ucm-UID/ucm.sock)")
  private @Nullable Path socket;

  @Option(
      names = "--idle-exit",
      paramLabel = "SECONDS",
      defaultValue = "0",
      description =
          "end when there was no client for so long; 0 is never (default: ${DEFAULT-VALUE})")
  private long idleSeconds;

  @Option(
      names = "--staging",
      paramLabel = "SIZE",
      defaultValue = "4GiB",
      converter = ByteSize.Converter.class,
      description =
          "most shared memory in /dev/shm for the blocks of an engine that are on their way"
              + " (default: ${DEFAULT-VALUE})")
  private ByteSize staging = new ByteSize(0);

  @Option(
      names = "--metrics-port",
      paramLabel = "PORT",
      description = "answer Prometheus at http://127.0.0.1:PORT/metrics; 0 is any free port")
  private @Nullable Integer metricsPort;

  @Override
  public void run() {
    UsageException.when(idleSeconds < 0, "--idle-exit is 0 or more seconds; found " + idleSeconds);
    UsageException.within("--metrics-port", metricsPort, 0, MAX_PORT);
    PrintWriter err = spec.commandLine().getErr();
    try (Cleanup cleanup = new Cleanup()) {
      MetricsScopes metrics = metrics(cleanup, err);
      ServerDirectory directory =
          ServerDirectory.take(socket == null ? Daemon.defaultSocket() : socket);
      Engines engines =
          new Engines(
              plugins.catalog(),
              metrics,
              directory.segmentPrefix(),
              (long) staging.bytes(),
              System::nanoTime);
      UcmServer server =
          cleanup.add(new UcmServer(directory, engines, Duration.ofSeconds(idleSeconds)));
      err.println("ucm: serving engines at " + directory.socket());
      err.flush();
      server.serve();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private MetricsScopes metrics(Cleanup cleanup, PrintWriter err) {
    if (metricsPort == null) {
      return (model, worker) -> StoreMetrics.NONE;
    }
    MetricsConfig config = MetricsConfig.defaults();
    MetricsRegistry registry = new MetricsRegistry(config);
    MetricsEndpoint endpoint =
        cleanup.add(MetricsEndpoint.start(registry, config.host(), metricsPort));
    err.println("ucm: metrics at http://" + config.host() + ":" + endpoint.port() + "/metrics");
    return registry::scope;
  }
}
