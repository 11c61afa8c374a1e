package ucm.store.cache;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A process of its own that runs the main method of a class of these tests. */
final class TestProcess implements AutoCloseable {

  private final Process process;
  private final BufferedReader output;
  private final BufferedWriter input;

  TestProcess(Class<?> main, String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC"));
    command.addAll(List.of("-Xmx128m", "--enable-native-access=ALL-UNNAMED", "-cp", classPath()));
    command.add(main.getName());
    command.addAll(List.of(arguments));
    process = new ProcessBuilder(command).redirectErrorStream(true).start();
    output = process.inputReader();
    input = process.outputWriter();
  }

  /** The next line it prints; null when it has ended. */
  @Nullable String line() throws IOException {
    return output.readLine();
  }

  /** Tells it something. */
  void tell(String line) throws IOException {
    input.write(line + "\n");
    input.flush();
  }

  /** Kills it with SIGKILL and waits for its end. */
  void kill() {
    // Not through the process, which would close the pipe we read from.
    process.toHandle().destroyForcibly();
    Process _ = process.onExit().join();
  }

  /** Waits for its end. */
  int exitCode() throws InterruptedException {
    return process.waitFor();
  }

  @Override
  public void close() {
    kill();
  }

  private static String classPath() {
    try {
      String name = TestProcess.class.getName().replace('.', '/') + ".class";
      String found =
          Path.of(
                  Objects.requireNonNull(TestProcess.class.getResource("TestProcess.class"))
                      .toURI())
              .toString();
      String tests = found.substring(0, found.length() - name.length());
      return String.join(
          ":",
          Stream.of(
                  tests,
                  System.getProperty("jdk.module.path"),
                  System.getProperty("java.class.path"))
              .filter(Objects::nonNull)
              .toList());
    } catch (URISyntaxException e) {
      throw new AssertionError(e);
    }
  }
}
