package ucm.store.s3;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** An S3 server over a folder, on the loopback interface, for as long as a test wants it. */
final class VersityGateway implements AutoCloseable {

  static final String BUCKET = "blocks";

  private static final String VERSION = "v1.8.0";
  private static final long START_NANOS = TimeUnit.MINUTES.toNanos(1);
  private static final String WHY =
      "needs versitygw: go install github.com/versity/versitygw/cmd/versitygw@" + VERSION;

  private final Path folder;
  private final List<String> command;
  final int port;
  private Process process;

  private VersityGateway(Path folder, String... more) throws IOException, InterruptedException {
    this.folder = folder;
    this.port = freePort();
    Files.createDirectories(folder.resolve("objects").resolve(BUCKET));
    Files.createDirectories(folder.resolve("metadata"));
    this.command =
        Stream.of(
                Stream.of(program().orElseThrow(), "--port", "127.0.0.1:" + port, "--keep-alive"),
                Stream.of("--quiet"),
                Stream.of(more),
                // Files that a tool brought have none otherwise, which no GET of the CRT takes.
                Stream.of("posix", "--default-etag", "brought"),
                Stream.of("--sidecar", folder.resolve("metadata").toString()),
                Stream.of(folder.resolve("objects").toString()))
            .flatMap(words -> words)
            .toList();
    startAgain();
  }

  /** Skips the test when this machine has no server. */
  static void require() {
    assumeTrue(program().isPresent(), WHY);
  }

  /** Starts a server over a folder; several may have one. */
  static VersityGateway start(Path folder, String... more)
      throws IOException, InterruptedException {
    return new VersityGateway(folder, more);
  }

  /** Starts it once more after {@link #kill}. */
  void startAgain() throws IOException, InterruptedException {
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("log-" + port).toFile());
    Map<String, String> environment = builder.environment();
    environment.put("ROOT_ACCESS_KEY", environment.get("AWS_ACCESS_KEY_ID"));
    environment.put("ROOT_SECRET_KEY", environment.get("AWS_SECRET_ACCESS_KEY"));
    process = builder.start();
    long end = System.nanoTime() + START_NANOS;
    while (!listens()) {
      if (!process.isAlive() || System.nanoTime() > end) {
        throw new IOException(
            command + " did not start:\n" + Files.readString(folder.resolve("log-" + port)));
      }
      var _ = process.waitFor(20, TimeUnit.MILLISECONDS);
    }
  }

  private boolean listens() {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  String endpoint() {
    return "http://127.0.0.1:" + port;
  }

  /** The settings of a store whose objects begin with a prefix. */
  Map<String, Object> settings(String prefix) {
    return Map.of("s3_endpoints", endpoint(), "s3_bucket", BUCKET, "s3_prefix", prefix);
  }

  /** A prefix of its own for each test, the same after a restart of the store. */
  static String prefix(Path directory) {
    return directory.toString().substring(1);
  }

  /** Where the bytes of an object are. */
  Path file(String key) {
    return folder.resolve("objects").resolve(BUCKET).resolve(key);
  }

  /** Stops the process as SIGSTOP does, or lets it go on. */
  void signal(String name) throws IOException, InterruptedException {
    var _ = new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor();
  }

  /** Ends it as a crash does. */
  void kill() {
    process.destroyForcibly();
    process.onExit().join();
  }

  @Override
  public void close() {
    kill();
  }

  private static Optional<String> program() {
    Stream<Path> folders =
        Stream.concat(
            Stream.of(System.getenv("PATH").split(":")).map(Path::of),
            Stream.of(Path.of(System.getProperty("user.home"), "go", "bin")));
    return folders
        .map(folder -> folder.resolve("versitygw"))
        .filter(Files::isExecutable)
        .map(Path::toString)
        .findFirst();
  }

  static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
