package ucm.server;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreMetrics;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.server.session.Engines;

/** A daemon in the test's process, with blocks in files, whose clock the test moves. */
final class TestDaemon implements AutoCloseable {

  final Path socket;
  final String yaml;
  final AtomicLong nanos = new AtomicLong();

  private final UcmServer server;
  private final Thread thread;

  /**
   * Starts.
   *
   * @param folder of the socket and the blocks
   * @param stagingBytes for all slots of an engine
   */
  TestDaemon(Path folder, long stagingBytes) throws Exception {
    yaml =
        """
        ucm_connectors:
          - ucm_connector_name: UcmPipelineStore
            ucm_connector_config:
              store_pipeline: Posix
              storage_backends: %s
        """
            .formatted(Files.createDirectories(folder.resolve("data")));
    ServerDirectory directory = ServerDirectory.take(folder.resolve("run").resolve("ucm.sock"));
    socket = directory.socket();
    Engines engines =
        new Engines(
            StoreCatalog.find(),
            (model, worker) -> StoreMetrics.NONE,
            directory.segmentPrefix(),
            stagingBytes,
            nanos::get);
    server = new UcmServer(directory, engines, Duration.ZERO);
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

  JsonNode status() throws Exception {
    try (StatusClient observer = new StatusClient(socket)) {
      return JsonMapper.shared().readTree(observer.status());
    }
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
