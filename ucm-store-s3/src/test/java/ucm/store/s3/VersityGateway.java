package ucm.store.s3;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/** An S3 server over a folder, on the loopback interface, for as long as a test wants it. */
final class VersityGateway implements ObjectServer, AutoCloseable {

  private static final String VERSION = "v1.8.0";
  private static final String WHY =
      "needs versitygw: go install github.com/versity/versitygw/cmd/versitygw@" + VERSION;

  private final Path folder;
  private final List<String> command;
  private final int port;
  private Process process;

  private VersityGateway(Path folder, String... more) throws IOException, InterruptedException {
    this.folder = folder;
    this.port = ObjectServer.freePort();
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

  /** Starts a server over a folder that speaks TLS alone. */
  static VersityGateway start(Path folder, TlsFiles tls) throws IOException, InterruptedException {
    return new VersityGateway(
        folder, "--cert", tls.certificate().toString(), "--key", tls.key().toString());
  }

  /** Starts a server over a folder; several may have one. */
  static VersityGateway start(Path folder, String... more)
      throws IOException, InterruptedException {
    return new VersityGateway(folder, more);
  }

  @Override
  public void startAgain() throws IOException, InterruptedException {
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("log-" + port).toFile());
    Map<String, String> environment = builder.environment();
    environment.put("ROOT_ACCESS_KEY", environment.get("AWS_ACCESS_KEY_ID"));
    environment.put("ROOT_SECRET_KEY", environment.get("AWS_SECRET_ACCESS_KEY"));
    process = builder.start();
    ObjectServer.awaitListening(process, port, folder.resolve("log-" + port));
  }

  @Override
  public String endpoint() {
    return (command.contains("--cert") ? "https" : "http") + "://127.0.0.1:" + port;
  }

  @Override
  public int port() {
    return port;
  }

  /** Where the bytes of an object are. */
  Path file(String key) {
    return folder.resolve("objects").resolve(BUCKET).resolve(key);
  }

  @Override
  public void signal(String name) throws IOException, InterruptedException {
    ObjectServer.signal(process, name);
  }

  @Override
  public void kill() {
    process.destroyForcibly();
    process.onExit().join();
  }

  @Override
  public void close() {
    kill();
  }

  private static Optional<String> program() {
    return ObjectServer.program("versitygw", Path.of(System.getProperty("user.home"), "go", "bin"));
  }
}
