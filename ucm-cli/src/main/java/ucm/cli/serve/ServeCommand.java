package ucm.cli.serve;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.cli.output.ByteSize;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.LogSetup;
import ucm.cli.runtime.PluginsOption;
import ucm.lite.trace.FileFault;
import ucm.metrics.MetricsConfig;
import ucm.metrics.MetricsEndpoint;
import ucm.metrics.MetricsRegistry;
import ucm.platform.libc.Libc;
import ucm.server.AdminEndpoint;
import ucm.server.Daemon;
import ucm.server.ServerDirectory;
import ucm.server.UcmServer;

/** {@code ucm serve}: the daemon for engines in other processes. */
@Command(
    name = "serve",
    description = {
      "Serves engines of other languages, such as vLLM with the Python package ucm: one daemon a"
          + " node and user, for all engines and ranks there. Each engine brings its YAML file.",
      "Runs in the foreground. SIGTERM and Ctrl-C end it when all that engines have saved is"
          + " stored. A client that finds no daemon starts one, with --idle-exit."
    })
public final class ServeCommand extends ServeOperations {

  private static final Logger LOG = LoggerFactory.getLogger(ServeCommand.class);
  private static final int MAX_PORT = 65_535;

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
      description = "answer Prometheus at http://HOST:PORT/metrics; 0 is any free port")
  private @Nullable Integer metricsPort;

  @Option(
      names = "--metrics-host",
      paramLabel = "HOST",
      defaultValue = "127.0.0.1",
      description =
          "the address that Prometheus is answered at; there is no password"
              + " (default: ${DEFAULT-VALUE})")
  private String metricsHost = "";

  @Option(
      names = "--admin-port",
      paramLabel = "PORT",
      description =
          "answer operators at http://127.0.0.1:PORT/v1/, as openapi.json of the docs says; 0 is"
              + " any free port")
  private @Nullable Integer adminPort;

  @Option(
      names = "--admin-token",
      paramLabel = "FILE",
      description =
          "what they must send, a line in a file of mode 0600; made when there is none (default:"
              + " admin.token beside the socket)")
  private @Nullable Path adminToken;

  @Option(
      names = "--log",
      paramLabel = "FILE",
      description =
          "log into this file instead of to the standard error; begun again at 16 MiB, and two"
              + " older ones are kept as FILE.1 and FILE.2")
  private @Nullable Path log;

  @Override
  public void run() {
    UsageException.when(idleSeconds < 0, "--idle-exit is 0 or more seconds; found " + idleSeconds);
    UsageException.within("--metrics-port", metricsPort, 0, MAX_PORT);
    UsageException.within("--admin-port", adminPort, 0, MAX_PORT);
    UsageException.when(
        adminToken != null && adminPort == null, "--admin-token is of --admin-port");
    try (Cleanup cleanup = new Cleanup()) {
      ServerDirectory directory =
          ServerDirectory.take(socket == null ? Daemon.defaultSocket() : socket);
      logIntoFile();
      MetricsRegistry registry = metrics(cleanup);
      UcmServer server =
          cleanup.add(
              UcmServer.open(
                  directory,
                  plugins.catalog(),
                  registry == null ? (model, worker) -> StoreMetrics.NONE : registry::scope,
                  (long) staging.bytes(),
                  Duration.ofSeconds(idleSeconds),
                  new ServeProcess(registry)));
      if (adminPort != null) {
        Path token =
            adminToken == null ? directory.socket().resolveSibling("admin.token") : adminToken;
        AdminEndpoint endpoint = cleanup.add(AdminEndpoint.start(server, adminPort, token));
        announce("operators at " + endpoint.url() + ", with the token in " + token);
      }
      announce("serving engines at " + directory.socket());
      server.serve();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void logIntoFile() {
    if (log != null) {
      try {
        LogSetup.intoFile(log.toAbsolutePath(), Libc::redirectOutput);
      } catch (IOException e) {
        throw new StoreException("cannot log into " + log + ": " + FileFault.of(e), e);
      }
    }
  }

  /** A line for who started it: on the terminal, or in the log. */
  private void announce(String line) {
    if (log == null) {
      err().println("ucm: " + line);
      err().flush();
    } else {
      LOG.info("{}", line);
    }
  }

  private @Nullable MetricsRegistry metrics(Cleanup cleanup) {
    if (metricsPort == null) {
      return null;
    }
    MetricsRegistry registry = new MetricsRegistry(MetricsConfig.defaults());
    MetricsEndpoint endpoint =
        cleanup.add(MetricsEndpoint.start(registry, metricsHost, metricsPort));
    announce("metrics at http://" + metricsHost + ":" + endpoint.port() + "/metrics");
    return registry;
  }
}
