package ucm.dist;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import ucm.api.Checkup;
import ucm.api.Checkup.Finding;
import ucm.api.Checkup.Status;
import ucm.api.StoreConfig;

class CheckupRunTest {

  private static final StoreConfig NOTHING = StoreConfig.of(Map.of());

  @Test
  void handsOnWhatWasFound() throws InterruptedException {
    CheckupRun run = new CheckupRun(Duration.ofMinutes(1));
    List<Finding> found = List.of(Finding.ok("a", "b"));
    assertThat(run.run(config -> found, NOTHING)).isEqualTo(found);
    assertThat(run.hung()).isFalse();
  }

  @Test
  void checkupThatHangsIsAFinding() throws InterruptedException {
    CountDownLatch end = new CountDownLatch(1);
    Checkup hanging =
        config -> {
          try {
            end.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          return List.of();
        };
    CheckupRun run = new CheckupRun(Duration.ofMillis(1));
    Finding found = run.run(hanging, NOTHING).getFirst();
    end.countDown();
    assertThat(found.status()).isEqualTo(Status.FAILED);
    assertThat(found.found()).contains("has not come back");
    assertThat(run.hung()).isTrue();
  }

  @Test
  void checkupThatFailsIsAFindingAndNoStackTrace() throws InterruptedException {
    Checkup broken =
        config -> {
          throw new NoClassDefFoundError("acme/Lib");
        };
    CheckupRun run = new CheckupRun(Duration.ofMinutes(1));
    Finding found = run.run(broken, NOTHING).getFirst();
    assertThat(found.status()).isEqualTo(Status.FAILED);
    assertThat(found.found()).contains("acme/Lib");
  }
}
