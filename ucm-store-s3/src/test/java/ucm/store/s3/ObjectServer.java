package ucm.store.s3;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** An S3 server on the loopback interface, for as long as a test wants it. */
interface ObjectServer {

  /** The bucket that each server has. */
  String BUCKET = "blocks";

  long START_NANOS = TimeUnit.MINUTES.toNanos(2);

  /** The port of its gateway, or of the first. */
  int port();

  /** Stops its gateway as SIGSTOP does, or lets it go on. */
  void signal(String name) throws IOException, InterruptedException;

  /** Ends its gateway as a crash does. */
  void kill();

  /** Starts its gateway once more after {@link #kill}. */
  void startAgain() throws IOException, InterruptedException;

  default String endpoint() {
    return "http://127.0.0.1:" + port();
  }

  /** The settings of a store whose objects begin with a prefix. */
  default Map<String, Object> settings(String prefix) {
    return Map.of("s3_endpoints", endpoint(), "s3_bucket", BUCKET, "s3_prefix", prefix);
  }

  /** A prefix of its own for each test, the same after a restart of the store. */
  static String prefix(Path directory) {
    return directory.toString().substring(1);
  }

  /** Where a program is, looked for in PATH and in more folders. */
  static Optional<String> program(String name, Path... more) {
    Stream<Path> path = Stream.of(System.getenv("PATH").split(":")).map(Path::of);
    return Stream.concat(path, Stream.of(more))
        .map(folder -> folder.resolve(name))
        .filter(Files::isExecutable)
        .map(Path::toString)
        .findFirst();
  }

  static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** Waits until a process listens at a port. */
  static void awaitListening(Process process, int port, Path log)
      throws IOException, InterruptedException {
    long end = System.nanoTime() + START_NANOS;
    while (!listens(port)) {
      if (!process.isAlive() || System.nanoTime() > end) {
        throw new IOException(
            process.info().command() + " did not start:\n" + Files.readString(log));
      }
      var _ = process.waitFor(20, TimeUnit.MILLISECONDS);
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

  static void signal(Process process, String name) throws IOException, InterruptedException {
    var _ = new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor();
  }
}
