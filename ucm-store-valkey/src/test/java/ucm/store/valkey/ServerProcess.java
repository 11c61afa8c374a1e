package ucm.store.valkey;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A server on the loopback interface, for as long as a test wants it. */
final class ServerProcess implements AutoCloseable {

  private static final int START_ATTEMPTS = 3;
  private static final long JOIN_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final Path directory;
  private final List<String> command;
  private Process process;
  final int port;

  private ServerProcess(Path directory, int port, List<String> command) throws IOException {
    this.directory = directory;
    this.port = port;
    this.command = command;
    startAgain();
  }

  /** Starts it once more after {@link #kill}, with what it kept on disk. */
  void startAgain() throws IOException {
    process = new ProcessBuilder(command).redirectErrorStream(true).start();
    BufferedReader log = process.inputReader();
    StringBuilder said = new StringBuilder();
    String line = log.readLine();
    while (line != null && !line.contains("Ready to accept connections")) {
      said.append(line).append('\n');
      line = log.readLine();
    }
    if (line == null) {
      throw new IOException(command + " did not start:\n" + said);
    }
    Thread.ofPlatform().daemon().start(() -> log.lines().forEach(_ -> {}));
  }

  /** Skips the test when this machine has no server. */
  static void require() throws IOException, InterruptedException {
    require(ServerProgram.INSTALLED);
  }

  /** Skips the test when a server cannot be had here. */
  static void require(ServerProgram program) throws IOException, InterruptedException {
    assumeTrue(ServerProgram.client().isPresent(), "needs " + ServerProgram.INSTALLED.needs);
    assumeTrue(program.find().isPresent(), "needs " + program.needs);
  }

  /** Starts a server whose blocks outlive its process. */
  static ServerProcess durable() throws IOException, InterruptedException {
    return start("--appendonly", "yes", "--appendfsync", "always");
  }

  /** Starts a server that keeps all in memory; more are its options, PORT in them its port. */
  static ServerProcess start(String... more) throws IOException, InterruptedException {
    return start(ServerProgram.INSTALLED, more);
  }

  /** The same of a server. */
  static ServerProcess start(ServerProgram program, String... more)
      throws IOException, InterruptedException {
    String server = program.find().orElseThrow();
    IOException first = null;
    for (int attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      try {
        return startAt(server, freePort(), more);
      } catch (IOException e) {
        // Another program may have taken the port since.
        first = first == null ? e : first;
      }
    }
    throw first;
  }

  private static ServerProcess startAt(String program, int port, String... more)
      throws IOException {
    Path directory = Files.createTempDirectory("ucm-valkey-");
    List<String> command =
        new ArrayList<>(
            List.of(program, "--bind", "127.0.0.1", "--save", "", "--dir", directory.toString()));
    if (!Arrays.asList(more).contains("--tls-port")) {
      command.addAll(List.of("--port", "" + port));
    }
    for (String option : more) {
      command.add(
          switch (option) {
            case "PORT" -> "" + port;
            case "OTHER_PORT" -> "" + freePort();
            default -> option;
          });
    }
    return new ServerProcess(directory, port, command);
  }

  /** Makes a cluster of servers. */
  static List<ServerProcess> cluster(int size) throws IOException, InterruptedException {
    List<ServerProcess> servers = new ArrayList<>();
    List<String> command =
        new ArrayList<>(List.of(ServerProgram.client().orElseThrow(), "--cluster", "create"));
    for (int i = 0; i < size; i++) {
      servers.add(start("--cluster-enabled", "yes", "--cluster-port", "OTHER_PORT"));
      command.add("127.0.0.1:" + servers.get(i).port);
    }
    command.addAll(List.of("--cluster-replicas", "0", "--cluster-yes"));
    Process create = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(create.getInputStream().readAllBytes());
    if (create.waitFor() != 0) {
      throw new IOException(said);
    }
    // Each server finds out by itself, some time later, and refuses to store until then.
    long deadline = System.nanoTime() + JOIN_NANOS;
    for (ServerProcess server : servers) {
      String state = server.ask("cluster", "info");
      while (!state.contains("cluster_state:ok")) {
        if (System.nanoTime() > deadline) {
          throw new IOException(server.node() + " is in no cluster:\n" + state);
        }
        state = server.ask("cluster", "info");
      }
    }
    return servers;
  }

  /** What a command of the client program answers. */
  String ask(String... words) throws IOException {
    List<String> command =
        new ArrayList<>(List.of(ServerProgram.client().orElseThrow(), "-p", "" + port));
    command.addAll(List.of(words));
    Process cli = new ProcessBuilder(command).redirectErrorStream(true).start();
    return new String(cli.getInputStream().readAllBytes()).strip();
  }

  String node() {
    return "127.0.0.1:" + port;
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
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted((a, b) -> b.compareTo(a)).map(Path::toFile).forEach(File::delete);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
