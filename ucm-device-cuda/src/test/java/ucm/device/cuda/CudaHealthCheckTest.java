package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;

/** What is found of drivers, devices and GPUDirect, and how bad it is. */
final class CudaHealthCheckTest {

  private final SimulatedCuda cuda = SimulatedCuda.load();

  @TempDir private Path root;

  @Test
  void listsTheDevices() {
    assertThat(run(Map.of()))
        .containsExactly(Finding.ok("GPU 0", "Simulated GPU 0, 16.0 GiB, driver for CUDA 12.6"));
  }

  @Test
  void missesTheDeviceThatIsAskedFor() {
    Finding warning = run(Map.of("device_id", 4)).getLast();
    assertThat(warning.status()).isEqualTo(Status.WARNING);
    assertThat(warning.found()).isEqualTo("device_id is 4, and the driver shows 1");
    assertThat(run(Map.of("device_id", 4, "cache_device", "cuda")).getLast().status())
        .isEqualTo(Status.FAILED);
    assertThat(run(Map.of("device_id", 4, "cache_device", "host"))).hasSize(1);
  }

  @Test
  void aDriverThatDoesNotWorkFailsWhoAsksForIt() {
    cuda.fail("cuInit", 1, 2, 999);
    assertThat(run(Map.of()).getFirst().status()).isEqualTo(Status.WARNING);
    Finding failed = run(Map.of("cache_device", "cuda")).getFirst();
    assertThat(failed.status()).isEqualTo(Status.FAILED);
    assertThat(failed.found()).contains("999 CUDA_ERROR_UNKNOWN");
  }

  @Test
  void namesEverythingThatGpuDirectLacks() throws IOException {
    Finding all = run(Map.of("use_gdr", true)).getLast();
    assertThat(all.status()).isEqualTo(Status.FAILED);
    assertThat(all.found()).contains("nvidia_peermem", "nvidia_fs", "RDMA", "a store that moves");
    Files.createDirectories(root.resolve("sys/module/nvidia_peermem"));
    Files.createDirectories(root.resolve("sys/class/infiniband/mlx5_0"));
    Files.createDirectories(root.resolve("proc/driver/nvidia-fs/version"));
    Finding rest = run(Map.of("use_gdr", true)).getLast();
    assertThat(rest.found())
        .contains("a store that moves")
        .doesNotContain("nvidia_peermem", "nvidia_fs", "RDMA network");
  }

  private List<Finding> run(Map<String, ?> values) {
    return new CudaHealthCheck(root).run(StoreConfig.of(values), List.of());
  }
}
