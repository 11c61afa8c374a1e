package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Runs the tests in {@code python/tests} with {@code ucm serve} of the image. */
final class PythonTests {

  static final String NEWEST = "0.29";

  private static final Path PYTHON = Path.of("/usr/bin/python3");

  private PythonTests() {}

  static void assumePresent() throws Exception {
    assumeTrue(
        Files.isExecutable(PYTHON) && run(PYTHON, "-c", "import numpy, pytest, torch") == 0,
        "needs the Debian packages python3-torch, python3-numpy and python3-pytest (.ci/packages)");
  }

  /**
   * Runs the tests of some marks and names with the interfaces of one version of vLLM.
   *
   * @param folder an empty folder
   */
  static void run(
      Path folder, String profile, String marks, String selection, Map<String, String> environment)
      throws Exception {
    Path out = folder.resolve("out");
    List<Object> command =
        List.of(
            PYTHON,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            folder.resolve("t"),
            "-m",
            marks,
            "-k",
            selection,
            Path.of("..", "python", "tests"));
    ProcessBuilder builder =
        new ProcessBuilder(command.stream().map(String::valueOf).toList())
            .redirectErrorStream(true)
            .redirectOutput(out.toFile());
    builder.environment().putAll(environment);
    builder.environment().put("VLLM_STANDIN_PROFILE", profile);
    builder.environment().put("UCM_HOME", UcmProcess.IMAGE.toString());
    builder.environment().put("UCM_JAVA_OPTS", UcmProcess.JAVA_OPTIONS);
    builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
    // As vLLM sets it for its workers.
    builder.environment().put("OMP_NUM_THREADS", "1");
    assertThat(builder.start().waitFor()).as(() -> read(out)).isZero();
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return e.toString();
    }
  }

  private static int run(Object... command) throws Exception {
    return new ProcessBuilder(List.of(command).stream().map(String::valueOf).toList())
        .redirectErrorStream(true)
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .start()
        .waitFor();
  }
}
