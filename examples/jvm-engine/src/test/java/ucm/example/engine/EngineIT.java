package ucm.example.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.testkit.fault.SimulatedLibrary;

/** The engine as README starts it: modules, and a process for each run. */
class EngineIT {

  @TempDir private Path folder;
  private final Map<String, String> environment = new HashMap<>();

  private List<String> run(String mode) throws IOException, InterruptedException {
    return run(0, folder.resolve("blocks").toString(), "320", mode);
  }

  private List<String> run(int exitCode, String place, String promptTokens, String mode)
      throws IOException, InterruptedException {
    Path output = folder.resolve("output");
    ProcessBuilder engine =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--module-path",
                System.getProperty("engine.modules"),
                "--enable-native-access=com.sun.jna,ucm.platform,ucm.store.ds3fs",
                "--module",
                "ucm.example.engine/ucm.example.engine.Main",
                place,
                promptTokens,
                mode)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile());
    engine.environment().putAll(environment);
    engine.environment().put("UCM_LOG_PATH", folder.resolve("log").toString());
    Process process = engine.start();
    boolean ended = process.waitFor(5, TimeUnit.MINUTES);
    if (!ended) {
      process.destroyForcibly();
    }
    String text = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(ended).as(text).isTrue();
    assertThat(process.exitValue()).as(text).isEqualTo(exitCode);
    return text.lines().toList();
  }

  private static String line(List<String> lines, String begin) {
    return lines.stream().filter(line -> line.startsWith(begin)).findFirst().orElseThrow();
  }

  @ParameterizedTest
  @ValueSource(strings = {"layerwise", "direct"})
  void aSecondProcessComputesOneTokenAndGetsTheSameBits(String mode)
      throws IOException, InterruptedException {
    List<String> first = run(mode);
    List<String> second = run(mode);
    assertThat(first).contains("prompt tokens computed: 320");
    assertThat(second).contains("prompt tokens loaded: 319", "prompt tokens computed: 1");
    assertThat(line(second, "logits")).isEqualTo(line(first, "logits"));
    assertThat(line(second, "generated")).isEqualTo(line(first, "generated"));
    assertThat(second)
        .anyMatch(
            line ->
                line.endsWith(
                    "request_id: request-1, total_blocks_num: 20, hit hbm: 0, hit external: 20,"
                        + " total tokens: 320"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"Posix", "Cache|Posix", "Nfs", "Fake"})
  void takesThePipelineOfAnOperatorsFile(String pipeline) throws IOException, InterruptedException {
    Path file = file(pipeline, "");
    assertThat(run(0, file.toString(), "320", "direct")).contains("prompt tokens computed: 320");
    // Fake keeps no bytes.
    String again = pipeline.equals("Fake") ? "320" : "1";
    assertThat(run(0, file.toString(), "320", "direct"))
        .contains("prompt tokens computed: " + again);
  }

  private Path file(String pipeline, String more) throws IOException {
    String storage =
        pipeline.equals("Fake") ? "" : "      storage_backends: \"" + folder + "/tree\"\n";
    String cache = pipeline.startsWith("Cache") ? "      cache_buffer_capacity_gb: 0.0625\n" : "";
    return Files.writeString(
        folder.resolve("ucm.yaml"),
        "ucm_connectors:\n  - ucm_connector_name: UcmPipelineStore\n    ucm_connector_config:\n"
            + "      store_pipeline: \""
            + pipeline
            + "\"\n"
            + storage
            + cache
            + more);
  }

  /** With the simulated 3FS library of ucm-store-ds3fs's tests. */
  @Test
  void takesThePipelineOfAnOperatorOf3fs() throws IOException, InterruptedException {
    folder = folder.toRealPath();
    Path library = folder.resolve("libhf3fs_api_shared.so");
    SimulatedLibrary.build(Path.of("../../ucm-store-ds3fs/src/test/c/sim_hf3fs.c"), library);
    environment.put("SIM_HF3FS_MOUNTS", folder.toString());
    Path file =
        file(
            "Cache|Ds3fs",
            """
                  ds3fs_library_path: %s
                  iov_read_size: 16777216
                  iov_write_size: 16777216
            """
                .formatted(library));
    assertThat(run(0, file.toString(), "320", "direct")).contains("prompt tokens computed: 320");
    assertThat(run(0, file.toString(), "320", "direct"))
        .contains("prompt tokens computed: 1")
        .noneMatch(line -> line.startsWith("WARNING"));
  }

  @Test
  void aLibraryOf3fsThatIsMissingIsASentence() throws IOException, InterruptedException {
    Files.createDirectory(folder.resolve("tree"));
    Path file = file("Cache|Ds3fs", "      ds3fs_library_path: /nowhere/libhf3fs_api_shared.so\n");
    assertThat(String.join("\n", run(1, file.toString(), "320", "direct")))
        .contains("stage Ds3fs (2 of 2 in Cache|Ds3fs)", "/nowhere/libhf3fs_api_shared.so")
        .doesNotContain("\tat ");
  }

  @Test
  void aMissingFileIsASentenceAndExitCodeTwo() throws IOException, InterruptedException {
    String file = folder.resolve("missing.yaml").toString();
    assertThat(String.join("\n", run(2, file, "320", "direct")))
        .startsWith(file + ": error: there is no such file")
        .doesNotContain("Exception");
  }

  @Test
  void aWrongNumberIsTheUsageAndExitCodeTwo() throws IOException, InterruptedException {
    assertThat(run(2, folder.toString(), "many", "direct"))
        .singleElement(STRING)
        .startsWith("usage: ");
  }

  /** More memory than any machine of the tests has, and a directory that cannot be made. */
  @Test
  void inLiteModeNothingOfTheConfiguredPipelineIsNeeded() throws IOException, InterruptedException {
    Path config =
        Files.writeString(
            folder.resolve("ucm.yaml"),
            """
            ucm_connector_name: UcmPipelineStore
            ucm_connector_config:
              store_pipeline: "Cache|Posix"
              storage_backends: "/proc/nowhere"
              cache_buffer_capacity_gb: 1000000
            use_lite: true
            """);
    assertThat(run(0, config.toString(), "320", "layerwise"))
        .contains("prompt tokens computed: 320")
        .anyMatch(
            line ->
                line.contains(
                    "request_id: request-1, total_blocks_num: 20, hit hbm: 0, hit external: 0,"
                        + " total tokens: 320"));
  }
}
