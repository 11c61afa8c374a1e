package ucm.cli.setup;

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

class SystemHealthCheckTest {

  private static final String CLOCKS = "sys/devices/system/clocksource/clocksource0";

  @TempDir private Path root;

  private Finding finding(String subject) {
    return new SystemHealthCheck(root)
        .run(StoreConfig.of(Map.of()), List.of()).stream()
            .filter(finding -> finding.subject().equals(subject))
            .findFirst()
            .orElseThrow();
  }

  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }

  @Test
  void warnsOfAClockThatIsSlowToAsk() throws IOException {
    assertThat(finding("clock").status()).isEqualTo(Status.OK);
    write(CLOCKS + "/current_clocksource", "tsc\n");
    assertThat(finding("clock").status()).isEqualTo(Status.OK);
    write(CLOCKS + "/current_clocksource", "hpet\n");
    assertThat(finding("clock").status()).isEqualTo(Status.WARNING);
    assertThat(finding("clock").found()).contains("hpet");
  }

  @Test
  void warnsOfLowLimitsAndOfAMissingTmpfs() throws IOException {
    write(
        "proc/self/limits",
        """
        Limit                     Soft Limit           Hard Limit           Units
        Max open files            1024                 524288               files
        Max locked memory         65536                65536                bytes
        """);
    assertThat(finding("open files").status()).isEqualTo(Status.WARNING);
    assertThat(finding("open files").advice()).contains("ulimit -n");
    assertThat(finding("locked memory").status()).isEqualTo(Status.WARNING);
    assertThat(finding("/dev/shm").status()).isEqualTo(Status.WARNING);
    Files.createDirectories(root.resolve("dev/shm"));
    assertThat(finding("/dev/shm").status()).isEqualTo(Status.OK);
  }
}
