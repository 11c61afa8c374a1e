package ucm.store.file.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.StoreMetrics;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.fixture.LocalFileStore;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.ManualClock;

/** Two lanes, without a store. */
@Timeout(60)
final class DirectoryExecutorsTest {

  private static final int WELL = 0;
  private static final int BROKEN = 1;

  @TempDir private Path parent;

  private final ManualClock clock = new ManualClock();

  /** Nobody probes; a backend is down after so many failures. */
  private DirectoryHealth health(int failureThreshold) {
    List<String> backends = List.of(parent.resolve("a").toString(), parent.resolve("b").toString());
    FileStoreConfig config =
        FileStoreConfig.from(
                LocalFileStore.KIND,
                StoreConfig.of(
                    Map.of(
                        "storage_backends",
                        backends,
                        "block_size",
                        4096,
                        "store_health.failure_threshold",
                        failureThreshold)))
            .orElseThrow();
    BlockPaths paths = new BlockPaths("Posix", backends, config.folderDigits());
    return new DirectoryHealth(
        config, new LibcFileOperations(), paths, StoreMetrics.NONE, clock, backend -> {});
  }

  private DirectoryExecutors lanes(DirectoryHealth health) {
    return new DirectoryExecutors(LocalFileStore.KIND, 2, health, clock, health.patienceNanos());
  }

  private static void breakOne(int backend) {
    if (backend == BROKEN) {
      throw new StackOverflowError("made up by the test");
    }
  }

  @Test
  void laneSurvivesAnErrorOfItsWork() {
    DirectoryHealth health = health(2);
    Map<Integer, Thread> first = new ConcurrentHashMap<>();
    Map<Integer, Thread> second = new ConcurrentHashMap<>();
    try (DirectoryExecutors lanes = lanes(health)) {
      BitSet done =
          lanes.forEach(
              lanes.all(),
              backend -> {
                first.put(backend, Thread.currentThread());
                breakOne(backend);
              });
      assertThat(done.stream()).containsExactly(WELL);
      done = lanes.forEach(lanes.all(), backend -> second.put(backend, Thread.currentThread()));
      assertThat(done.stream()).containsExactly(WELL, BROKEN);
      assertThat(second).as("the threads of before").isEqualTo(first);
    }
    assertThat(health.refusal(BROKEN)).as("once is not often enough").isNull();
  }

  @Test
  void errorOfItsWorkCountsAgainstTheDirectory() {
    DirectoryHealth health = health(1);
    try (DirectoryExecutors lanes = lanes(health)) {
      lanes.forEach(lanes.all(), DirectoryExecutorsTest::breakOne);
      assertThat(health.refusal(BROKEN))
          .hasMessageContaining(parent.resolve("b").toString())
          .hasMessageContaining("made up by the test");
      assertThat(health.refusal(WELL)).isNull();
      BitSet done = lanes.forEach(lanes.all(), backend -> {});
      assertThat(done.stream()).as("left out while it is down").containsExactly(WELL);
    }
  }
}
