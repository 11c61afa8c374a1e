package ucm.testkit;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A process of its own that runs the {@code main} of a test class, so that a test can kill it. It sees
 * all that the test sees, on its class path, and its error output comes with its output. To be used by
 * one thread, but for {@link #kill}.
 */
public final class TestProcess implements AutoCloseable {

  private final Process process;
  private final BufferedReader output;
  private final BufferedWriter input;

  /**
   * Starts it.
   *
   * @param main a class with a public static {@code main}
   * @param arguments what {@code main} is given
   */
  public TestProcess(Class<?> main, String... arguments) throws IOException {
    process = builder(main, arguments).redirectErrorStream(true).start();
    output = process.inputReader();
    input = process.outputWriter();
  }

  /** How such a process is started, for tests that want its streams elsewhere. */
  public static ProcessBuilder builder(Class<?> main, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC"));
    command.addAll(List.of("-Xmx256m", "--enable-native-access=ALL-UNNAMED"));
    command.addAll(List.of("-cp", classPath(main), main.getName()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command);
  }

  /** The next line it prints, after a wait; null when it has ended. */
  public @Nullable String line() throws IOException {
    return output.readLine();
  }

  /** Writes a line to its standard input. */
  public void tell(String line) throws IOException {
    input.write(line + "\n");
    input.flush();
  }

  /** Sends SIGKILL and returns at once; what it had printed can still be read. */
  public void sendKill() {
    // Not through the process, which would close the pipe we read from.
    process.toHandle().destroyForcibly();
  }

  /** Kills it with SIGKILL and waits for its end; what it had printed can still be read. */
  public void kill() {
    sendKill();
    Process _ = process.onExit().join();
  }

  /** Waits for its end; 137 is the end by SIGKILL. */
  public int exitCode() throws InterruptedException {
    return process.waitFor();
  }

  /** Kills it if it still runs. */
  @Override
  public void close() {
    kill();
  }

  /** Where the class comes from, which is no entry of its own when tests run patched into a module. */
  private static String classPath(Class<?> main) {
    String name = main.getName().replace('.', '/') + ".class";
    String found = Objects.requireNonNull(main.getResource("/" + name), name).toString();
    String root = found.substring(0, found.length() - name.length());
    return Stream.of(
            root.startsWith("file:") ? Path.of(URI.create(root)).toString() : null,
            System.getProperty("jdk.module.path"),
            System.getProperty("java.class.path"))
        .filter(Objects::nonNull)
        .collect(Collectors.joining(":"));
  }
}
