package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Runs the tests in {@code python/tests/engines} with a real engine and {@code ucm serve} of the image. */
final class EngineTests {

  private static final Path TOOLS = Path.of("..", "tools", "engines");
  private static final Path PYTHON = Path.of("/usr/bin/python3");

  private EngineTests() {}

  /**
   * Runs tests with one version of an engine; skips, and says why, where that cannot be installed.
   *
   * @param folder an empty folder
   * @param marks of pytest; empty for all
   */
  static void run(Path folder, String engine, String version, String marks) throws Exception {
    assumeTrue(Files.isExecutable(PYTHON), "needs the Debian package python3 (.ci/packages)");
    Path said = folder.resolve("venv");
    int made = run(said, TOOLS.resolve("venv"), engine, version);
    assumeTrue(made != 1, () -> engine + " " + version + " is not tested: " + read(said).strip());
    assertThat(made).as(() -> read(said)).isZero();
    // Stays, with the time of each test.
    Path out =
        Files.createDirectories(Path.of("target", "engine-tests"))
            .resolve(String.join("-", engine, version, marks.replace(' ', '-')) + ".log");
    int ended =
        run(
            out,
            TOOLS.resolve("test"),
            engine,
            version,
            "-x",
            "--tb=short",
            "--durations=0",
            "--basetemp",
            folder.resolve("t"),
            "-m",
            marks);
    assertThat(ended).as(() -> read(out)).isZero();
  }

  private static int run(Path out, Path script, Object... arguments) throws Exception {
    List<String> command =
        Stream.concat(Stream.of(PYTHON, script), Arrays.stream(arguments))
            .map(String::valueOf)
            .toList();
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
    builder.environment().put("UCM_HOME", UcmProcess.IMAGE.toString());
    builder.environment().put("UCM_JAVA_OPTS", UcmProcess.JAVA_OPTIONS);
    return builder.start().waitFor();
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return e.toString();
    }
  }
}
