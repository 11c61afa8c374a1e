package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** {@code ucm store} on a bucket of a real versitygw, and copies between it and folders. */
class StoreBucketIT {

  private static final Pattern BLOCK = Pattern.compile("[0-9a-f]{32}");
  private static final Map<String, String> CREDENTIALS =
      Map.of("AWS_ACCESS_KEY_ID", "ucmtestkey", "AWS_SECRET_ACCESS_KEY", "ucmtestsecret0123456789");
  private static final long START_NANOS = TimeUnit.MINUTES.toNanos(2);

  @TempDir private static Path folder;

  private static Process gateway;
  private static String endpoint;
  private static Path source;

  @BeforeAll
  static void startsTheServerAndFillsAFolder() throws Exception {
    Optional<Path> program =
        Stream.concat(
                Stream.of(System.getenv("PATH").split(":")).map(Path::of),
                Stream.of(Path.of(System.getProperty("user.home"), "go", "bin")))
            .map(each -> each.resolve("versitygw"))
            .filter(Files::isExecutable)
            .findFirst();
    assumeTrue(
        program.isPresent(),
        "needs versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0");
    int port;
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = socket.getLocalPort();
    }
    endpoint = "http://127.0.0.1:" + port;
    Files.createDirectories(folder.resolve("objects/blocks"));
    Files.createDirectories(folder.resolve("metadata"));
    ProcessBuilder builder =
        new ProcessBuilder(
                program.get().toString(),
                "--port",
                "127.0.0.1:" + port,
                "--quiet",
                "posix",
                "--sidecar",
                folder.resolve("metadata").toString(),
                folder.resolve("objects").toString())
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("gateway.log").toFile());
    builder.environment().put("ROOT_ACCESS_KEY", CREDENTIALS.get("AWS_ACCESS_KEY_ID"));
    builder.environment().put("ROOT_SECRET_KEY", CREDENTIALS.get("AWS_SECRET_ACCESS_KEY"));
    gateway = builder.start();
    long end = System.nanoTime() + START_NANOS;
    while (!listens(port)) {
      assertThat(gateway.isAlive() && System.nanoTime() < end).as("versitygw started").isTrue();
      var _ = gateway.waitFor(20, TimeUnit.MILLISECONDS);
    }
    source = Files.createDirectories(folder.resolve("source"));
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Posix\"",
            "cache_buffer_capacity_gb: 0.1",
            "storage_backends: \"" + source + "\"");
    Path trace = UcmProcess.IMAGE.resolve("share/examples/requests.jsonl");
    UcmProcess.run("trace", "replay", trace, "--config", config).requireOk();
  }

  @AfterAll
  static void stopsTheServer() throws Exception {
    if (gateway != null) {
      gateway.destroyForcibly().waitFor();
    }
  }

  private static boolean listens(int port) {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private static Process start(Object... args) {
    List<Object> all = new ArrayList<>(List.of("store"));
    all.addAll(List.of(args));
    all.addAll(List.of("--set", "s3_endpoints=" + endpoint));
    return UcmProcess.start(UcmProcess.IMAGE, CREDENTIALS, all.toArray());
  }

  private static UcmProcess.Ended store(Object... args) {
    return UcmProcess.finish(start(args));
  }

  /** The blocks in a folder. */
  private static List<Path> blocks(Path folder) throws IOException {
    if (Files.notExists(folder)) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(folder)) {
      return files
          .filter(file -> BLOCK.matcher(file.getFileName().toString()).matches())
          .filter(Files::isRegularFile)
          .sorted()
          .toList();
    }
  }

  private static void flip(Path file) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[0] ^= 1;
    Files.write(file, bytes);
  }

  @Test
  void aCopyThatIsKilledGoesOnAndLeavesOutWhatIsDamaged() throws Exception {
    Path from = folder.resolve("from");
    FileTree.copy(source, from);
    List<Path> files = blocks(from);
    assertThat(files).hasSizeGreaterThan(20);
    Path bad = files.get(7);
    flip(bad);
    String to = "s3://blocks/copy";
    Path objects = folder.resolve("objects/blocks/copy");
    // Slow enough to be killed in the middle.
    long size = files.stream().mapToLong(file -> file.toFile().length()).sum();
    assertThat(size).isGreaterThan(1_000_000);
    Process slow = start("copy", from, to, "--threads", 1, "--max-mbps", 1, "--json");
    while (blocks(objects).size() < 3 && slow.isAlive()) {
      var _ = slow.waitFor(20, TimeUnit.MILLISECONDS);
    }
    slow.destroyForcibly().waitFor();
    int stored = blocks(objects).size();
    assertThat(stored).isBetween(3, files.size() - 2);

    UcmProcess.Ended again = store("copy", from, to, "--json");
    assertThat(again.exitCode()).as(again.all()).isEqualTo(1);
    JsonNode json = again.json();
    assertThat(json.get("present_blocks").asInt()).isGreaterThanOrEqualTo(3);
    assertThat(json.get("present_blocks").asInt() + json.get("copied_blocks").asInt())
        .isEqualTo(files.size() - 1);
    assertThat(json.get("not_copied").get(0).get("id").asString())
        .isEqualTo(bad.getFileName().toString());
    assertThat(json.get("not_copied").get(0).get("reason").asString()).contains("is damaged");
    assertThat(blocks(objects)).hasSize(files.size() - 1);

    UcmProcess.Ended verified = store("verify", to, "--json").requireOk();
    assertThat(verified.json().get("good_blocks").asInt()).isEqualTo(files.size() - 1);

    Path back = folder.resolve("back");
    Process stopped = start("copy", to, back, "--threads", 2, "--max-mbps", 1);
    while (blocks(back).size() < 3 && stopped.isAlive()) {
      var _ = stopped.waitFor(20, TimeUnit.MILLISECONDS);
    }
    var _ = new ProcessBuilder("kill", "-INT", "" + stopped.pid()).start().waitFor();
    assertThat(UcmProcess.finish(stopped).exitCode()).isNotZero();
    assertThat(blocks(back)).hasSizeBetween(3, files.size() - 2);
    try (Stream<Path> left = Files.walk(back)) {
      assertThat(left.filter(file -> file.toString().endsWith(".tmp"))).isEmpty();
    }
    store("copy", to, back, "--json").requireOk();
    assertThat(blocks(back)).hasSize(files.size() - 1);
    for (Path file : blocks(back)) {
      assertThat(file).hasSameBinaryContentAs(from.resolve(back.relativize(file)));
    }
    UcmProcess.Ended local = UcmProcess.run("store", "verify", back, "--json");
    assertThat(local.json().get("good_blocks").asInt()).isEqualTo(files.size() - 1);
    UcmProcess.Ended nothing = store("copy", to, back, "--json");
    assertThat(nothing.json().get("copied_blocks").asInt()).isZero();
    assertThat(nothing.exitCode()).isZero();
  }

  @Test
  void theCommandsOfFoldersWorkOnABucket() throws Exception {
    String place = "s3://blocks/tools";
    UcmProcess.Ended copied = store("copy", source, place).requireOk();
    assertThat(copied.out()).contains("copied " + blocks(source).size() + " blocks");
    Path objects = folder.resolve("objects/blocks/tools");
    int count = blocks(objects).size();
    UcmProcess.Ended stat = store("stat", place, "--json").requireOk();
    assertThat(stat.json().get("directories").get(0).get("blocks").asInt()).isEqualTo(count);
    UcmProcess.Ended ls = store("ls", place, "--json", "--sort", "id");
    assertThat(ls.json().get("blocks")).hasSize(count);
    String first = ls.json().get("blocks").get(0).get("id").asString();

    UcmProcess.Ended removed = store("rm", place, first, "--yes", "--json").requireOk();
    assertThat(removed.json().get("removed_blocks").asInt()).isOne();
    flip(blocks(objects).getFirst());
    UcmProcess.Ended damaged = store("verify", place, "--json");
    assertThat(damaged.exitCode()).isEqualTo(1);
    assertThat(damaged.json().get("damaged_blocks").asInt()).isOne();
    UcmProcess.Ended adopted = store("adopt", place, "--json");
    assertThat(adopted.json().get("verifiable_blocks").asInt()).isEqualTo(count - 1);
    store("gc", place, "--to-percent", 50, "--json").requireOk();
    assertThat(blocks(objects)).hasSizeLessThanOrEqualTo((count + 1) / 2).isNotEmpty();
  }

  @Test
  void whatCannotBeIsSaidInALine() {
    UcmProcess.Ended scheme = store("stat", "s4://blocks/tools");
    assertThat(scheme.exitCode()).isEqualTo(2);
    assertThat(scheme.err()).contains("no store has addresses like s4://", "s3://");
    UcmProcess.Ended bucket = store("ls", "s3://there-is-none/tools");
    assertThat(bucket.exitCode()).isEqualTo(1);
    assertThat(bucket.err()).contains("there-is-none").doesNotContain("\tat ");
    UcmProcess.Ended secret =
        UcmProcess.run(
            "store", "stat", "s3://blocks/x", "--set", "s3_endpoints=http://name:secret@127.0.0.1");
    assertThat(secret.exitCode()).isEqualTo(2);
    assertThat(secret.all()).doesNotContain("secret@");
    UcmProcess.Ended missing = store("copy", folder.resolve("none"), "s3://blocks/x");
    assertThat(missing.exitCode()).isEqualTo(2);
  }
}
