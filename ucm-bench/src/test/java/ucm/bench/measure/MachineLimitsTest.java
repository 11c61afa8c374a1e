package ucm.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.bench.measure.MachineLimits.Kind;
import ucm.pipeline.config.UcmConfig;

class MachineLimitsTest {

  @TempDir private Path folder;

  @Test
  void movesBytesAndWritesOneFileABlock() throws Exception {
    try (MachineLimits limits = new MachineLimits(plan(5, 10_000, false, false))) {
      for (int round = 0; round < 2; round++) {
        limits.round(round);
        for (Kind kind : Kind.values()) {
          assertThat(limits.gigabytesPerSecond(kind)).as("%s", kind).isPositive();
        }
        assertThat(limits.access(7, true)).isPositive();
        assertThat(limits.access(7, false)).isPositive();
      }
      assertThat(sizes()).hasSize(10).containsOnly(10_000L);
    }
  }

  @Test
  void roundsSizesUpToWholePagesWhenItPassesByThePageCache() throws Exception {
    try (MachineLimits limits = new MachineLimits(plan(3, 10_000, true, false))) {
      limits.round(0);
      try {
        assertThat(limits.gigabytesPerSecond(Kind.WRITE)).isPositive();
      } catch (UncheckedIOException e) {
        Assumptions.abort("the file system of " + folder + " has no O_DIRECT: " + e.getMessage());
      }
      assertThat(limits.gigabytesPerSecond(Kind.READ)).isPositive();
      assertThat(sizes()).hasSize(3).containsOnly(12_288L);
    }
  }

  @Test
  void writesAndReadsLayerByLayer() throws Exception {
    try (MachineLimits limits = new MachineLimits(plan(5, 8000, false, true))) {
      limits.round(0);
      assertThat(limits.gigabytesPerSecond(Kind.COPY_OUT)).isPositive();
      assertThat(limits.gigabytesPerSecond(Kind.WRITE)).isPositive();
      assertThat(limits.gigabytesPerSecond(Kind.CHECKED_READ)).isPositive();
      assertThat(sizes()).hasSize(5).containsOnly(8000L);
    }
  }

  @Test
  @Timeout(60)
  void saysThatAFileIsMissingAndLeavesNoThreadWaiting() throws Exception {
    try (MachineLimits limits = new MachineLimits(plan(2, 100, false, false))) {
      limits.round(0);
      assertThatThrownBy(() -> limits.gigabytesPerSecond(Kind.READ))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("/0-");
    }
  }

  @Test
  @Timeout(60)
  void measuringAfterTheCloseIsRefused() throws Exception {
    MachineLimits limits = new MachineLimits(plan(2, 100, false, false));
    limits.close();
    assertThatThrownBy(() -> limits.gigabytesPerSecond(Kind.COPY_IN))
        .isInstanceOf(RejectedExecutionException.class);
  }

  /** Blocks of four shards, in tasks of two blocks, or layer by layer, two tasks at a time. */
  private BenchPlan plan(int blocks, long blockSize, boolean direct, boolean layerwise) {
    BlockLayout layout = BlockLayout.uniform(blockSize / 4, blockSize / 4, blockSize);
    UcmConfig config = UcmConfig.of("Posix", Map.of());
    return new BenchPlan(config, layout, direct, folder, blocks, 2, layerwise, 2, 7, 0, 1, 2);
  }

  /** Of all files but the one that sets room aside, which is empty. */
  private List<Long> sizes() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files
          .filter(file -> Files.isRegularFile(file) && !file.endsWith("room"))
          .map(file -> file.toFile().length())
          .toList();
    }
  }
}
