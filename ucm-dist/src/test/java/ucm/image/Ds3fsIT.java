package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.testkit.fault.SimulatedLibrary;

/** What an operator of 3FS runs, on the image and the simulated library of ucm-store-ds3fs's tests. */
class Ds3fsIT {

  private static final Path SOURCE = Path.of("../ucm-store-ds3fs/src/test/c/sim_hf3fs.c");

  @TempDir private Path folder;
  private Path config;
  private final Map<String, String> environment = new HashMap<>();

  @BeforeEach
  void mounts() throws Exception {
    folder = folder.toRealPath();
    Path mount = Files.createDirectory(folder.resolve("mount"));
    Path lib = Files.createDirectory(folder.resolve("lib"));
    SimulatedLibrary.build(SOURCE, lib.resolve("libhf3fs_api_shared.so"));
    config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Ds3fs\"",
            "storage_backends: \"" + mount.resolve("blocks") + "\"",
            "buffer_size: 0.05",
            "iov_read_size: 16777216",
            "iov_write_size: 16777216");
    environment.put("LD_LIBRARY_PATH", lib.toString());
    environment.put("SIM_HF3FS_MOUNTS", mount.toString());
    environment.put("SIM_HF3FS_REPORT", folder.resolve("report").toString());
  }

  private UcmProcess.Ended run(Object... arguments) throws IOException {
    return UcmProcess.finish(UcmProcess.start(UcmProcess.IMAGE, environment, arguments));
  }

  @Test
  void doctorFindsLibraryMountAndSharedMemory() throws Exception {
    UcmProcess.Ended doctor = run("doctor", "--config", config).requireOk();
    assertThat(doctor.out())
        .containsPattern("ok +3FS library: .*libhf3fs_api_shared.so")
        .containsPattern("ok +3FS mount: .*mount/blocks is on the 3FS mounted at .*mount")
        .containsPattern("ok +shared memory for 3FS")
        .containsPattern("ok +O_DIRECT in .*mount/blocks")
        .containsPattern("ok +block through Cache.Ds3fs in .*mount/blocks: .* are equal");
    assertThat(Files.readAllLines(folder.resolve("report")))
        .contains("iovs=0", "rings=0", "registered=0", "under_way=0", "misuses=0")
        .doesNotContain("reads=0", "writes=0");
  }

  @Test
  void doctorAndStoreSayWhatToInstallWithoutTheLibrary() throws Exception {
    environment.remove("LD_LIBRARY_PATH");
    assumeTrue(!Files.exists(Path.of("/usr/local/lib/libhf3fs_api_shared.so")), "3FS is installed");
    UcmProcess.Ended doctor = run("doctor", "--config", config);
    assertThat(doctor.exitCode()).as(doctor.all()).isEqualTo(1);
    assertThat(doctor.out()).containsPattern("failed +3FS library: .*install the 3FS client");
    UcmProcess.Ended bench = run("bench", "store", "--config", config, "--repeat", 1);
    assertThat(bench.exitCode()).as(bench.all()).isEqualTo(1);
    assertThat(bench.err()).contains("install the 3FS client").doesNotContain("\tat ");
  }

  @Test
  void benchComparesEveryByteAndLeavesNothingBehind() throws Exception {
    UcmProcess.Ended bench =
        run(
                "bench",
                "store",
                "--config",
                config,
                "--repeat",
                1,
                "--warmup",
                0,
                "--blocks",
                8,
                "--lookups",
                1000,
                "--json")
            .requireOk();
    assertThat(bench.json().isEmpty()).isFalse();
    assertThat(Files.readAllLines(folder.resolve("report")))
        .contains("iovs=0", "rings=0", "registered=0", "under_way=0", "misuses=0")
        .doesNotContain("reads=0", "writes=0");
  }
}
