package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code ucm plugins}, in an image: the plugins that it brings are loaded where they are enabled. */
class PluginsIT {

  private static final int START_ATTEMPTS = 3;

  @TempDir private static Path folder;

  private static Path image;

  @BeforeAll
  static void anImageOfItsOwn() throws IOException {
    image = folder.resolve("image");
    FileTree.copy(UcmProcess.IMAGE, image);
  }

  private static UcmProcess.Ended ucm(Object... args) {
    return UcmProcess.finish(UcmProcess.start(image, Map.of(), args));
  }

  private static String state() {
    return ucm("plugins", "list", "--json").json().get("plugins").get(0).get("state").asString();
  }

  @Test
  void valkeyIsUsedWhereItIsEnabledAndOnlyThere() throws Exception {
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Valkey\"",
            "cache_buffer_capacity_gb: 0.1",
            "valkey_nodes: \"127.0.0.1:1\"");
    assertThat(state()).isEqualTo("available");
    UcmProcess.Ended without = ucm("config", "check", config);
    assertThat(without.exitCode()).isEqualTo(2);
    assertThat(without.all()).contains("Valkey");

    UcmProcess.Ended enabled = ucm("plugins", "enable", "valkey").requireOk();
    assertThat(enabled.out()).contains("valkey is enabled", image + "/plugins/valkey");
    assertThat(state()).isEqualTo("enabled");
    assertThat(ucm("stores").out()).containsPattern("Valkey +ucm.store.valkey");
    ucm("config", "check", config).requireOk();
    demo();

    UcmProcess.Ended disabled = ucm("plugins", "disable", "valkey", "--json").requireOk();
    assertThat(disabled.json().get("state").asString()).isEqualTo("available");
    assertThat(ucm("stores").out()).doesNotContain("Valkey");
    assertThat(image.resolve("plugins/valkey")).doesNotExist();
  }

  @Test
  void whatIsNotThereIsWrongUsage() {
    UcmProcess.Ended wrong = ucm("plugins", "enable", "nope");
    assertThat(wrong.exitCode()).isEqualTo(2);
    assertThat(wrong.err()).contains("this image brings no plugin \"nope\"", "valkey");
    assertThat(ucm("plugins").exitCode()).isEqualTo(2);
    assertThat(ucm("plugins", "list", "--plugins", folder.resolve("none")).exitCode()).isEqualTo(2);
  }

  /** With a server where there is one; what comes before needs none. */
  private static void demo() throws Exception {
    Optional<Path> program =
        Stream.of("/usr/bin/valkey-server", "/usr/bin/redis-server")
            .map(Path::of)
            .filter(Files::isExecutable)
            .findFirst();
    assumeTrue(program.isPresent(), "needs a server: install the Debian package redis-server");
    int port;
    Process server;
    int failed = 0;
    do {
      // Another program may take the port before the server does.
      assertThat(failed).as("servers that did not start").isLessThan(START_ATTEMPTS);
      port = freePort();
      server =
          new ProcessBuilder(
                  program.get().toString(),
                  "--bind",
                  "127.0.0.1",
                  "--port",
                  "" + port,
                  "--save",
                  "")
              .directory(folder.toFile())
              .redirectErrorStream(true)
              .start();
      failed++;
    } while (!becomesReady(server));
    try {
      Path config =
          UcmYaml.in(
              folder,
              "store_pipeline: \"Cache|Valkey\"",
              "cache_buffer_capacity_gb: 0.1",
              "valkey_nodes: \"127.0.0.1:" + port + "\"");
      UcmProcess.Ended demo =
          ucm("demo", "--config", config, "--prompts", 2, "--input-len", 1280).requireOk();
      assertThat(demo.out()).contains("pipeline Cache|Valkey", "Round 2 found 10 of 10 blocks");
      assertThat(demo.all()).doesNotContain("Exception");
    } finally {
      server.destroyForcibly();
      Process _ = server.onExit().join();
    }
  }

  /** Whether it comes to answer; if not, it has ended. */
  private static boolean becomesReady(Process server) throws IOException {
    BufferedReader log = server.inputReader();
    String line = log.readLine();
    while (line != null && !line.contains("Ready to accept connections")) {
      line = log.readLine();
    }
    Thread _ = Thread.ofPlatform().daemon().start(() -> log.lines().forEach(_ -> {}));
    return line != null;
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
