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

class HealthCheckRunTest {

  private static final StoreConfig NOTHING = StoreConfig.of(Map.of());

  @Test
  void handsOnWhatWasFound() {
    HealthCheckRun run = new HealthCheckRun(Duration.ofMinutes(1));
    List<Finding> found = List.of(Finding.ok("a", "b"));
    assertThat(run.run((config, stages) -> found, NOTHING, List.of())).isEqualTo(found);
    assertThat(run.hung()).isFalse();
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
    HealthCheckRun run = new HealthCheckRun(Duration.ofMillis(1));
    Finding found = run.run(hanging, NOTHING, List.of()).getFirst();
    end.countDown();
    assertThat(found.status()).isEqualTo(Status.FAILED);
    assertThat(found.found()).contains("has not come back");
    assertThat(run.hung()).isTrue();
  }

  @Test
  void healthCheckThatFailsIsAFindingAndNoStackTrace() {
    HealthCheck broken =
        (config, stages) -> {
          throw new NoClassDefFoundError("acme/Lib");
        };
    HealthCheckRun run = new HealthCheckRun(Duration.ofMinutes(1));
    Finding found = run.run(broken, NOTHING, List.of()).getFirst();
    assertThat(found.status()).isEqualTo(Status.FAILED);
    assertThat(found.found()).contains("acme/Lib");
  }
}
