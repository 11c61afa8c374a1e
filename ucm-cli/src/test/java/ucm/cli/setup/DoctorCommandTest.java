package ucm.cli.setup;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;

class DoctorCommandTest {

  private static final StoreConfig NOTHING = StoreConfig.of(Map.of());

  @Test
  void handsOnWhatWasFound() {
    DoctorCommand doctor = new DoctorCommand();
    Duration limit = Duration.ofMinutes(1);
    List<Finding> found = List.of(Finding.ok("a", "b"));
    assertThat(doctor.run((config, stages) -> found, NOTHING, List.of(), limit)).isEqualTo(found);
    assertThat(doctor.hung()).isFalse();
  }

  @Test
  void healthCheckThatHangsIsAFinding() {
    CountDownLatch end = new CountDownLatch(1);
    HealthCheck hanging =
        (config, stages) -> {
          try {
            end.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          return List.of();
        };
    DoctorCommand doctor = new DoctorCommand();
    Duration limit = Duration.ofMillis(1);
    Finding found = doctor.run(hanging, NOTHING, List.of(), limit).getFirst();
    end.countDown();
    assertThat(found.status()).isEqualTo(Status.FAILED);
    assertThat(found.found()).contains("has not come back");
    assertThat(doctor.hung()).isTrue();
  }

  @Test
  void healthCheckThatFailsIsAFindingAndNoStackTrace() {
    HealthCheck broken =
        (config, stages) -> {
          throw new NoClassDefFoundError("acme/Lib");
        };
    DoctorCommand doctor = new DoctorCommand();
    Duration limit = Duration.ofMinutes(1);
    Finding found = doctor.run(broken, NOTHING, List.of(), limit).getFirst();
    assertThat(found.status()).isEqualTo(Status.FAILED);
    assertThat(found.found()).contains("acme/Lib");
  }
}
