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

/** The image on a machine with a driver, which is simulated, and without. */
class GpuIT {

  @TempDir private Path folder;

  @Test
  void aPoolIsPinnedAndLeavesNothingBehind() throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    Path temporary = Files.createDirectories(folder.resolve("tmp"));
    Path file =
        UcmYaml.write(
            folder.resolve("ucm.yaml"),
            "store_pipeline: \"Cache|Posix\"",
            "storage_backends: \"" + folder.resolve("blocks") + "\"",
            "cache_buffer_capacity_gb: 0.1",
            "cache_device: cuda");
    UcmProcess.Ended doctor =
        run(
                driver.environment("UCM_JAVA_OPTS", "-Djava.io.tmpdir=" + temporary),
                "doctor",
                "--config",
                file)
            .requireOk();
    assertThat(doctor.out()).contains("GPU 0: Simulated GPU 0", "ok       block through");
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
  void aFileOfThatNameInTheTemporaryFolderIsNotLoaded() throws IOException {
    SimulatedDriver.assumeNoRealDriver();
    Path temporary = Files.createDirectories(folder.resolve("tmp"));
    // No library at all: loading it would be told.
    Files.writeString(temporary.resolve("libJCudaDriver-12.6.0-linux-x86_64.so"), "planted");
    UcmProcess.Ended doctor =
        run(Map.of("UCM_JAVA_OPTS", "-Djava.io.tmpdir=" + temporary), "doctor");
    assertThat(doctor.all())
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
      UcmProcess.Ended ended = run(environment, demo).requireOk();
      assertThat(ended.out()).contains("Round 2 found 10 of 10 blocks");
    }
  }

  private static UcmProcess.Ended run(Map<String, String> environment, Object... args) {
    return UcmProcess.finish(UcmProcess.start(UcmProcess.IMAGE, environment, args));
  }
}
