package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** The image on a machine with a driver, which is simulated, and without. No figure is judged here. */
class GpuIT {

  private static final Object[] TINY = {
    "bench", "gpu", "--round-mb", 8, "--repeat", 2, "--warmup", 1, "--streams", 2
  };

  @TempDir private Path folder;

  @Test
  void benchMovesEveryShapeRightAndLeavesNothingBehind() throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    Path temporary = Files.createDirectories(folder.resolve("tmp"));
    UcmProcess.Ended bench =
        run(
            driver.environment(
                "UCM_JAVA_OPTS", "-Djava.io.tmpdir=" + temporary, "SIM_CUDA_VERSION", "12080"),
            Stream.concat(Stream.of(TINY), Stream.of("--json")).toArray());
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    JsonNode machine = bench.json().get("machine");
    assertThat(machine.get("gpu").asString()).isEqualTo("Simulated GPU 0");
    assertThat(machine.get("driver").asString()).isEqualTo("CUDA 12.8");
    assertThat(machine.get("processor").asString()).isNotEmpty();
    JsonNode results = bench.json().get("results");
    assertThat(results.findValuesAsString("shard_bytes"))
        .contains("65536", "262144", "1048576", "2097152", "4194304");
    assertThat(results.findValuesAsString("way")).contains("pool", "calls", "batch", "rows");
    for (JsonNode result : results) {
      JsonNode measure = result.get("measure");
      assertThat(measure.get("name").asString())
          .isIn("host to device", "device to host", "both at once");
      assertThat(measure.get("ratio").get("median").asDouble()).isPositive();
      assertThat(result.get("queueing_us").get("median").asDouble()).isPositive();
    }
    assertThat(driver.counted())
        .containsEntry("misuses", "0")
        .containsEntry("unregistered", "0")
        .containsEntry("streams", "0")
        .containsEntry("events", "0")
        .containsEntry("registrations", "0")
        .containsEntry("allocations", "0")
        .containsEntry("contexts", "0");
    // JCuda's native library came from the image.
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void benchPrintsATableForPeople() throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    UcmProcess.Ended bench = run(driver.environment(), TINY);
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    assertThat(bench.out())
        .contains("2 MiB in 32 x 64 KiB", "rows", "both at once", "RATIO", "gpu: Simulated GPU 0")
        .doesNotContain("batch  ");
  }

  @Test
  void benchNamesWhatIsMissing() throws Exception {
    SimulatedDriver.assumeNoRealDriver();
    UcmProcess.Ended bench = UcmProcess.run(TINY);
    assertThat(bench.exitCode()).as(bench.all()).isEqualTo(1);
    assertThat(bench.err()).contains("libcuda.so.1 was not found").doesNotContain("\tat ");
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    UcmProcess.Ended other = run(driver.environment(), "bench", "gpu", "--device", 3);
    assertThat(other.err()).contains("no CUDA device 3", "the driver shows 1");
    UcmProcess.Ended wrong = run(driver.environment(), "bench", "gpu", "--repeat", 0);
    assertThat(wrong.exitCode()).isEqualTo(2);
  }

  @Test
  void aFileOfThatNameInTheTemporaryFolderIsNotLoaded() throws IOException {
    SimulatedDriver.assumeNoRealDriver();
    Path temporary = Files.createDirectories(folder.resolve("tmp"));
    // No library at all: loading it would be told.
    Files.writeString(temporary.resolve("libJCudaDriver-12.6.0-linux-x86_64.so"), "planted");
    UcmProcess.Ended bench =
        run(Map.of("UCM_JAVA_OPTS", "-Djava.io.tmpdir=" + temporary), "bench", "gpu");
    assertThat(bench.err())
        .contains("libcuda.so.1 was not found")
        .doesNotContain("file too short", "invalid ELF");
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left).hasSize(1);
    }
  }

  @Test
  void hostMemoryIsMovedWhetherThereIsADriverOrNot() throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    Object[] demo = {
      "demo", "--prompts", 1, "--input-len", 1280, "--buffer-gb", 0.1, "--dir", folder
    };
    for (Map<String, String> environment :
        List.of(driver.environment(), driver.environment("SIM_CUDA_INIT", "999"))) {
      UcmProcess.Ended ended = run(environment, demo);
      assertThat(ended.exitCode()).as(ended.all()).isZero();
      assertThat(ended.out()).contains("Round 2 found 10 of 10 blocks");
    }
  }

  private static UcmProcess.Ended run(Map<String, String> environment, Object... args) {
    return UcmProcess.finish(UcmProcess.start(UcmProcess.IMAGE, environment, args));
  }
}
