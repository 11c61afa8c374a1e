package ucm.server;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreMetrics;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConnectorSettings;
import ucm.server.session.Engines;
import ucm.testkit.RecordingMetrics;

/** A daemon in the test's process, with blocks in files, whose clock the test moves; or in a process. */
final class TestDaemon implements AutoCloseable {

  final Path socket;
  final String yaml;
  final AtomicLong nanos = new AtomicLong();
  final RecordingMetrics metrics = new RecordingMetrics();

  /** So many of the next clients get none. */
  final AtomicInteger threadsToRefuse = new AtomicInteger();

  final Engines engines;
  final UcmServer server;
  private final Thread thread;

  /**
   * Starts.
   *
   * @param folder of the socket and the blocks
   * @param stagingBytes for all slots of an engine
   */
  TestDaemon(Path folder, long stagingBytes) throws Exception {
    this(folder, StoreCatalog.find(), "Posix", stagingBytes);
  }

  /** The same with another pipeline. */
  TestDaemon(Path folder, StoreCatalog stores, String pipeline, long stagingBytes)
      throws Exception {
    yaml = yaml(folder, pipeline);
    ServerDirectory directory = ServerDirectory.take(socket(folder));
    socket = directory.socket();
    engines =
        new Engines(
            stores,
            (model, worker) -> metrics,
            directory.segmentPrefix(),
            stagingBytes,
            nanos::get,
            PROCESS::apply);
    server = new UcmServer(directory, engines, Duration.ZERO, PROCESS, this::newThread);
    thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    server.serve();
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                });
  }

  private Thread newThread(Runnable client) {
    return threadsToRefuse.getAndUpdate(left -> Math.max(0, left - 1)) > 0
        ? new Thread() {
          @Override
          public void start() {
            throw new OutOfMemoryError("unable to create native thread");
          }
        }
        : Thread.ofPlatform().daemon().unstarted(client);
  }

  /** A process of which nothing can be changed but the word for its log. */
  private static final ProcessControl PROCESS =
      new ProcessControl() {
        private volatile String level = "info";

        @Override
        public String logLevel() {
          return level;
        }

        @Override
        public void setLogLevel(String word) {
          if (!List.of("debug", "info", "warning", "error").contains(word)) {
            throw new IllegalArgumentException("no level: " + word);
          }
          level = word;
        }

        @Override
        public Map<String, String> apply(ConnectorSettings settings, Set<String> keys) {
          return Map.of();
        }
      };

  static Path socket(Path folder) {
    return folder.resolve("run").resolve("ucm.sock");
  }

  /** A configuration whose blocks are in the folder. */
  static String yaml(Path folder, String pipeline) throws IOException {
    String text =
        """
        ucm_connectors:
          - ucm_connector_name: UcmPipelineStore
            ucm_connector_config:
              store_pipeline: %s
        """
            .formatted(pipeline);
    Path data = Files.createDirectories(folder.resolve("data"));
    if (pipeline.startsWith("Cache")) {
      text += "      cache_buffer_capacity_gb: 0.001\n";
    }
    return pipeline.endsWith("Posix") ? text + "      storage_backends: " + data + "\n" : text;
  }

  /** A process with a daemon: folder, and bytes of all slots of an engine. */
  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    ServerDirectory directory = ServerDirectory.take(socket(folder));
    Engines engines =
        new Engines(
            StoreCatalog.find(),
            (model, worker) -> StoreMetrics.NONE,
            directory.segmentPrefix(),
            Long.parseLong(arguments[1]),
            System::nanoTime,
            PROCESS::apply);
    try (UcmServer server = new UcmServer(directory, engines, Duration.ZERO, PROCESS)) {
      System.out.println("@ready");
      server.serve();
    }
  }

  JsonNode status() throws Exception {
    return JsonMapper.shared().readTree(Daemon.status(socket));
  }

  @Override
  public void close() {
    server.close();
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
