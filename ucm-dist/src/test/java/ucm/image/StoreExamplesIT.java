package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;

/** docs/plugins.md, followed by an author of stores with the image; it leads to the examples. */
class StoreExamplesIT {

  private static final String PAGE = "docs/plugins.md";
  private static final int START_ATTEMPTS = 3;
  private static final String VALKEY = "9. Private dependencies";

  @TempDir private static Path folder;

  private static Path image;
  private static Map<String, String> environment;

  private DocsReader author;

  @BeforeAll
  static void publishes() throws IOException {
    PublishedArtifacts artifacts = PublishedArtifacts.in(folder.resolve("repository"));
    image = folder.resolve("image");
    FileTree.copy(UcmProcess.IMAGE, image);
    Path checkout = folder.resolve("checkout");
    for (String example : List.of("ucm-store-hello", "ucm-store-valkey")) {
      PublishedArtifacts.copyExample(example, checkout.resolve("examples").resolve(example));
    }
    environment =
        Map.of(
            "PATH", artifacts.maven(folder.resolve("maven")).toString(),
            "UCM", checkout.toString(),
            "IMAGE", image.toString());
  }

  @BeforeEach
  void anAuthorSitsDown(TestInfo test) throws IOException {
    author =
        new DocsReader(
            folder.resolve(test.getTestMethod().orElseThrow().getName()), image, environment);
  }

  /** Follows some blocks of the page, and returns what their commands printed. */
  private String follow(Predicate<DocsBlock> which) throws IOException {
    StringBuilder printed = new StringBuilder();
    for (DocsBlock block : DocsBlock.of(PAGE)) {
      if (which.test(block)) {
        printed.append(author.follow(block));
      }
    }
    return printed.toString();
  }

  @Test
  void fromAnEmptyFolderToAStoreInTheImage() throws IOException {
    String printed = follow(block -> !block.section().equals(VALKEY));
    assertThat(printed)
        .containsPattern("Tests run: \\d{3}, Failures: 0, Errors: 0")
        .containsPattern("Hello +ucm.example.hello")
        .contains("hello_directory", "Threads that read and write files.")
        .contains("pipeline Cache|Hello", "Round 2 found 10 of 10 blocks of each prompt");
    assertThat(sources(author.workingDirectory()))
        .as("what the page ends with")
        .isEqualTo(sources(Path.of("../examples/ucm-store-hello")));
  }

  private static Map<String, String> sources(Path project) throws IOException {
    Map<String, String> sources = new TreeMap<>();
    sources.put("pom.xml", Files.readString(project.resolve("pom.xml")));
    try (Stream<Path> files = Files.walk(project.resolve("src"))) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        sources.put(project.relativize(file).toString(), Files.readString(file));
      }
    }
    return sources;
  }

  @Test
  @Tag("full")
  void buildsValkeyAndUsesIt() throws Exception {
    assumeTrue(
        Stream.of("valkey-server", "redis-server")
            .anyMatch(name -> Files.isExecutable(Path.of("/usr/bin", name))),
        "needs a server: install the Debian package redis-server");
    String printed = follow(block -> block.section().equals(VALKEY));
    assertThat(printed)
        .containsPattern("Tests run: \\d{3}, Failures: 0, Errors: 0")
        .containsPattern("Valkey +ucm.example.valkey");
    int port;
    Process server;
    int failed = 0;
    do {
      // Another program may take the port before the server does.
      assertThat(failed).as("servers that did not start").isLessThan(START_ATTEMPTS);
      port = freePort();
      server = server(port);
      failed++;
    } while (!becomesReady(server));
    try {
      requireDemo(port);
    } finally {
      server.destroyForcibly();
      Process _ = server.onExit().join();
    }
  }

  private static void requireDemo(int port) throws IOException {
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Valkey\"",
            "cache_buffer_capacity_gb: 0.1",
            "valkey_nodes: \"127.0.0.1:" + port + "\"");
    Process ucm =
        UcmProcess.start(
            image, Map.of(), "demo", "--config", config, "--prompts", 2, "--input-len", 1280);
    UcmProcess.Ended demo = UcmProcess.finish(ucm);
    assertThat(demo.exitCode()).as(demo.all()).isZero();
    assertThat(demo.out()).contains("pipeline Cache|Valkey", "Round 2 found 10 of 10 blocks");
    assertThat(demo.all()).doesNotContain("Exception");
  }

  private static Process server(int port) throws IOException {
    Path program =
        Files.isExecutable(Path.of("/usr/bin/valkey-server"))
            ? Path.of("/usr/bin/valkey-server")
            : Path.of("/usr/bin/redis-server");
    return new ProcessBuilder(
            program.toString(), "--bind", "127.0.0.1", "--port", "" + port, "--save", "")
        .directory(folder.toFile())
        .redirectErrorStream(true)
        .start();
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
