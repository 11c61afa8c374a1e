package ucm.store.file.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.StoreMetrics;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.ManualClock;

/** Two executors, without a store. */
@Timeout(60)
final class DirectoryExecutorsTest {

  private static final int WELL = 0;
  private static final int BROKEN = 1;

  @TempDir private Path parent;

  private final ManualClock clock = new ManualClock();

  /** Without probes; a directory is down after so many failures. */
  private DirectoryHealth health(int failureThreshold) {
    List<String> directories =
        List.of(parent.resolve("a").toString(), parent.resolve("b").toString());
    FileStoreConfig config =
        FileStoreConfig.from(
                LocalFileStore.KIND,
                StoreConfig.of(
                    Map.of(
                        "storage_backends",
                        directories,
                        "block_size",
                        4096,
                        "store_health.failure_threshold",
                        failureThreshold)))
            .orElseThrow();
    BlockPaths paths = new BlockPaths("Local", directories, config.folderDigits());
    return new DirectoryHealth(
        config, new LibcFileOperations(), paths, StoreMetrics.NONE, clock, directory -> {});
  }

  private DirectoryExecutors executors(DirectoryHealth health) {
    return new DirectoryExecutors(LocalFileStore.KIND, 2, health, clock, health.patienceNanos());
  }

  private static void breakOne(int directory) {
    if (directory == BROKEN) {
      throw new StackOverflowError("made up by the test");
    }
  }

  @Test
  void worksAgainAfterAnError() {
    DirectoryHealth health = health(2);
    try (DirectoryExecutors executors = executors(health)) {
      BitSet done = executors.forEach(executors.all(), DirectoryExecutorsTest::breakOne);
      assertThat(done.stream()).containsExactly(WELL);
      done = executors.forEach(executors.all(), directory -> {});
      assertThat(done.stream()).containsExactly(WELL, BROKEN);
    }
    assertThat(health.refusal(BROKEN)).as("once is not often enough").isNull();
  }

  @Test
  void errorOfItsWorkCountsAgainstTheDirectory() {
    DirectoryHealth health = health(1);
    try (DirectoryExecutors executors = executors(health)) {
      executors.forEach(executors.all(), DirectoryExecutorsTest::breakOne);
      assertThat(health.refusal(BROKEN))
          .hasMessageContaining(parent.resolve("b").toString())
          .hasMessageContaining("made up by the test");
      assertThat(health.refusal(WELL)).isNull();
      BitSet done = executors.forEach(executors.all(), directory -> {});
      assertThat(done.stream()).as("left out while it is down").containsExactly(WELL);
    }
  }
}
