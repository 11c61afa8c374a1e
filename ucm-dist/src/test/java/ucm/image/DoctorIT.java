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

/** What the doctor says, and with which exit code. */
class DoctorIT {

  @TempDir private Path folder;

  @Test
  void looksAtTheMachineAndFindsItGoodEnough() {
    UcmProcess.Ended doctor = UcmProcess.run("doctor").requireOk();
    assertThat(doctor.out())
        .startsWith("ok       Java: 25")
        .contains("kernel: Linux", "open files: limit of open files", "locked memory", "/dev/shm");
    JsonNode json = UcmProcess.run("doctor", "--json").json();
    assertThat(json.get("ok").asBoolean()).isTrue();
    assertThat(json.get("findings").findValuesAsString("subject")).contains("Java", "memory");
    assertThat(json.get("findings").findValuesAsString("status")).doesNotContain("failed");
  }

  @Test
  void missingDriverIsAFailureOnlyWhenTheFileAsksForIt() throws IOException {
    SimulatedDriver.assumeNoRealDriver();
    UcmProcess.Ended any =
        UcmProcess.run("doctor", "--config", config("auto", "false")).requireOk();
    assertThat(any.out()).contains("libcuda.so.1 was not found");
    Path asks = config("cuda", "false");
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", asks);
    assertThat(doctor.exitCode()).as(doctor.all()).isEqualTo(1);
    assertThat(doctor.out()).contains("failed   GPU", "libcuda.so.1", "cache_device: cuda asks");
    UcmProcess.Ended demo = UcmProcess.run("demo", "--config", asks);
    assertThat(demo.exitCode()).as(demo.all()).isEqualTo(1);
    assertThat(demo.err())
        .contains("cache_device is cuda, and libcuda.so.1 was not found")
        .doesNotContain("\tat ");
  }

  @Test
  void namesWhatIsWrongWithTheDriver() throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    Path asks = config("cuda", "false");
    assertThat(doctor(driver.environment(), asks).out())
        .contains("ok       GPU 0: Simulated GPU 0, 16.0 GiB, driver for CUDA 12.6");
    UcmProcess.Ended none = doctor(driver.environment("SIM_CUDA_INIT", "100"), asks);
    assertThat(none.exitCode()).isEqualTo(1);
    assertThat(none.out()).contains("cuInit", "100 CUDA_ERROR_NO_DEVICE", "nvidia-smi");
    UcmProcess.Ended old = doctor(driver.environment("SIM_CUDA_VERSION", "11040"), asks);
    assertThat(old.exitCode()).isEqualTo(1);
    assertThat(old.out()).contains("for CUDA 11.4", "12.0 or newer", "525");
    UcmProcess.Ended tolerated =
        doctor(driver.environment("SIM_CUDA_INIT", "100"), config("auto", "false"));
    assertThat(tolerated.exitCode()).isZero();
    assertThat(tolerated.out()).contains("warning  GPU");
  }

  @Test
  void saysWhatGpuDirectLacksAndThatTheFileIsWrong() throws IOException {
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", config("auto", "true"));
    assertThat(doctor.exitCode()).as(doctor.all()).isEqualTo(2);
    assertThat(doctor.out())
        .contains("failed   GPUDirect", "nvidia_fs", "this UCM has none", "set it to false")
        .contains("failed   configuration");
    UcmProcess.Ended check = UcmProcess.run("config", "check", config("auto", "true"));
    assertThat(check.exitCode()).isEqualTo(2);
    assertThat(check.out()).contains("use_gdr", "ucm doctor --config");
  }

  @Test
  void comparesMemoryWithTheFile() throws IOException {
    Path file = config("host", "false");
    Files.writeString(
        file, Files.readString(file).replace("capacity_gb: 0.1", "capacity_gb: 1000000"));
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", file);
    assertThat(doctor.exitCode()).isEqualTo(1);
    assertThat(doctor.out()).contains("failed   memory", "cache_buffer_capacity_gb is 1000000");
  }

  @Test
  void sendsABlockThroughThePipelineAndLeavesNothing() throws IOException {
    Path file = config("host", "false");
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", file).requireOk();
    assertThat(doctor.out())
        .contains("ok       block through Cache|Posix in " + folder.resolve("blocks"))
        .contains("loaded by a second instance, and are equal; removed again")
        .contains("aio in ", "O_DIRECT in ", "memory for Cache", "clock of ", "configuration");
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).containsExactly(file);
    }
    UcmProcess.Ended spared = UcmProcess.run("doctor", "--no-probe", "--config", file);
    assertThat(spared.out()).doesNotContain("block through").contains("directory ");
  }

  @Test
  void itsOwnBlockCausesNoWarningAboutTheFile() throws IOException {
    Path file = config("host", "false");
    Files.writeString(
        file, Files.readString(file).replace("cache_buffer_capacity_gb: 0.1", "buffer_size: 0.1"));
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", file).requireOk();
    assertThat(doctor.out()).contains("ok       block through Cache|Posix");
    assertThat(doctor.all()).doesNotContain("buffer_size", "has no effect");
  }

  @Test
  void blockThatCannotGetThroughIsAFailure() throws IOException {
    Path file = config("host", "false");
    // No file system has that much free.
    Files.writeString(file, Files.readString(file) + "      posix_min_free_gb: 100000000\n");
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--json", "--config", file);
    assertThat(doctor.exitCode()).as(doctor.all()).isEqualTo(1);
    JsonNode json = doctor.json();
    assertThat(json.get("ok").asBoolean()).isFalse();
    List<JsonNode> block =
        json.get("findings")
            .valueStream()
            .filter(finding -> finding.get("subject").asString().startsWith("block through"))
            .toList();
    assertThat(block).hasSize(1);
    assertThat(block.getFirst().get("status").asString()).isEqualTo("failed");
    assertThat(block.getFirst().get("found").asString()).contains("posix_min_free_gb");
  }

  @Test
  void pipelinesThatKeepNothingAreWarnedOf() throws IOException {
    Path file = config("host", "false");
    String text =
        Files.readString(file).replace("cache_device: host", "").replace("use_gdr: false", "");
    Files.writeString(file, text.replace("Cache|Posix", "Fake"));
    assertThat(UcmProcess.run("doctor", "--config", file).out())
        .contains("warning  block through Fake: it keeps no bytes");
    Files.writeString(file, text + "use_lite: true\n");
    assertThat(UcmProcess.run("doctor", "--config", file).out())
        .contains("warning  mode: use_lite")
        .doesNotContain("block through");
  }

  private static UcmProcess.Ended doctor(Map<String, String> environment, Path file) {
    return UcmProcess.finish(
        UcmProcess.start(
            UcmProcess.IMAGE, environment, List.of("doctor", "--config", file).toArray()));
  }

  private Path config(String device, String direct) throws IOException {
    return UcmYaml.write(
        folder.resolve("ucm-" + device + direct + ".yaml"),
        "store_pipeline: \"Cache|Posix\"",
        "storage_backends: \"" + folder.resolve("blocks") + "\"",
        "cache_buffer_capacity_gb: 0.1",
        "cache_device: " + device,
        "use_gdr: " + direct);
  }
}
