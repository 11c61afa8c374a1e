package ucm.dist;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples for authors of stores: built as their authors would, then dropped into the image. */
class StoreExamplesIT {

  @TempDir private static Path folder;

  private static PublishedArtifacts artifacts;
  private static Path image;

  @BeforeAll
  static void publishes() throws IOException {
    artifacts = PublishedArtifacts.in(folder.resolve("repository"));
    image = folder.resolve("image");
    PublishedArtifacts.copy(UcmProcess.IMAGE, image);
  }

  private static UcmProcess.Ended ucm(Object... args) {
    return UcmProcess.finish(UcmProcess.start(image, Map.of(), args));
  }

  @Test
  void buildsHelloAndUsesIt() throws IOException {
    Path built = artifacts.build("ucm-store-hello", folder);
    Files.copy(
        built.resolve("target/ucm-store-hello-1.0.jar"),
        image.resolve("plugins/ucm-store-hello-1.0.jar"));
    assertThat(ucm("stores").out()).contains("Hello", "ucm.example.hello");
    assertThat(ucm("config", "docs").out())
        .contains("hello_directory", "Threads that read and write files.");
    requireDemo("Cache|Hello", "hello_directory: \"" + folder.resolve("hello-blocks") + "\"");
  }

  @Test
  void buildsValkeyAndUsesIt() throws Exception {
    assumeTrue(
        Stream.of("valkey-server", "redis-server")
            .anyMatch(name -> Files.isExecutable(Path.of("/usr/bin", name))),
        "needs a server: install the Debian package redis-server");
    Path built = artifacts.build("ucm-store-valkey", folder);
    PublishedArtifacts.copy(
        built.resolve("target/plugins/valkey"), image.resolve("plugins/valkey"));
    assertThat(ucm("stores").out()).contains("Valkey", "ucm.example.valkey");
    int port = freePort();
    Process server = server(port);
    try {
      requireDemo("Cache|Valkey", "valkey_nodes: \"127.0.0.1:" + port + "\"");
    } finally {
      server.destroyForcibly();
      Process _ = server.onExit().join();
    }
  }

  private static void requireDemo(String pipeline, String key) throws IOException {
    Path config = folder.resolve("ucm.yaml");
    Files.writeString(
        config,
        """
        ucm_connectors:
          - ucm_connector_name: "UcmPipelineStore"
            ucm_connector_config:
              store_pipeline: "%s"
              cache_buffer_capacity_gb: 0.1
              %s
        """
            .formatted(pipeline, key));
    UcmProcess.Ended demo = ucm("demo", "--config", config, "--prompts", 2, "--input-len", 1280);
    assertThat(demo.exitCode()).as(demo.all()).isZero();
    assertThat(demo.out()).contains("pipeline " + pipeline, "Round 2 found 10 of 10 blocks");
    assertThat(demo.all()).doesNotContain("Exception");
  }

  private static Process server(int port) throws IOException {
    Path program =
        Files.isExecutable(Path.of("/usr/bin/valkey-server"))
            ? Path.of("/usr/bin/valkey-server")
            : Path.of("/usr/bin/redis-server");
    Process server =
        new ProcessBuilder(
                program.toString(), "--bind", "127.0.0.1", "--port", "" + port, "--save", "")
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .start();
    BufferedReader log = server.inputReader();
    String line = log.readLine();
    while (line != null && !line.contains("Ready to accept connections")) {
      line = log.readLine();
    }
    assertThat(line).as("the server starts").isNotNull();
    Thread _ = Thread.ofPlatform().daemon().start(() -> log.lines().forEach(_ -> {}));
    return server;
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
