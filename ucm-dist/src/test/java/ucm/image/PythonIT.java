package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The Python package with simulated interfaces of vLLM and {@code ucm serve} of the image: the tests in {@code
 * python/tests}, once for each version of vLLM's interfaces.
 */
class PythonIT {

  private static final Path PYTHON = Path.of("/usr/bin/python3");
  private static final String NEWEST = "0.29";
  private static final String OLDER =
      "(before and Cache) or abort or killed or (random and 2BNHD-1)";

  @TempDir private Path folder;

  @BeforeAll
  static void needsPython() throws Exception {
    assumeTrue(
        Files.isExecutable(PYTHON) && run(PYTHON, "-c", "import numpy, pytest, torch") == 0,
        "needs the Debian packages python3-torch, python3-numpy and python3-pytest (.ci/packages)");
  }

  @Test
  void theNewestInterfacesWithEveryLayoutRankAndFault() throws Exception {
    Path plugins = folder.resolve("plugins");
    PluginJar.buildFaulty(folder.resolve("faulty"), plugins.resolve("faulty.jar"));
    pytest(NEWEST, "not full", "", Map.of("UCM_PLUGINS", plugins.toString()));
  }

  @Tag("full")
  @Test
  void theSlowTests() throws Exception {
    pytest(NEWEST, "full", "", Map.of());
  }

  /** The daemon copies to and from the memory of a simulated GPU. */
  @Test
  void theDevicePlane() throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    pytest(
        NEWEST,
        "not full",
        "device or abort or before or (random and 2BNHD-2)",
        driver.environment("SIM_CUDA_DIRECT", "1", "SIM_CUDA_VERSION", "12080"));
  }

  @ParameterizedTest
  @ValueSource(strings = "0.9")
  void olderInterfaces(String profile) throws Exception {
    pytest(profile, "not full", OLDER, Map.of());
  }

  @Tag("full")
  @ParameterizedTest
  @ValueSource(strings = {"0.11", "0.12", "0.15", "0.18", "0.24"})
  void moreOlderInterfaces(String profile) throws Exception {
    pytest(profile, "not full", OLDER, Map.of());
  }

  private void pytest(
      String profile, String marks, String selection, Map<String, String> environment)
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
