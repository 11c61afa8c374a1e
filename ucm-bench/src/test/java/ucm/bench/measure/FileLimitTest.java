package ucm.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.pipeline.config.UcmConfig;

class FileLimitTest {

  @TempDir private Path folder;

  @Test
  void writesOneFileABlockAndReadsItBack() throws Exception {
    try (BenchThreads threads = new BenchThreads(2);
        FileLimit limit = new FileLimit(folder, plan(5, 10_000, false, false), threads)) {
      for (int round = 0; round < 2; round++) {
        limit.round(round);
        assertThat(limit.write()).isPositive();
        assertThat(limit.read()).isPositive();
        assertThat(limit.access(7, true)).isPositive();
        assertThat(limit.access(7, false)).isPositive();
      }
      assertThat(sizes()).hasSize(10).containsOnly(10_000L);
    }
  }

  @Test
  void roundsSizesUpToWholePagesWhenItPassesByThePageCache() throws Exception {
    try (BenchThreads threads = new BenchThreads(2);
        FileLimit limit = new FileLimit(folder, plan(3, 10_000, true, false), threads)) {
      limit.round(0);
      try {
        assertThat(limit.write()).isPositive();
      } catch (UncheckedIOException e) {
        Assumptions.abort("the file system of " + folder + " has no O_DIRECT: " + e.getMessage());
      }
      assertThat(limit.read()).isPositive();
      assertThat(sizes()).hasSize(3).containsOnly(12_288L);
    }
  }

  @Test
  void writesAndReadsLayerByLayer() throws Exception {
    try (BenchThreads threads = new BenchThreads(2);
        FileLimit limit = new FileLimit(folder, plan(5, 8000, false, true), threads)) {
      limit.round(0);
      assertThat(limit.write()).isPositive();
      assertThat(limit.read()).isPositive();
      assertThat(sizes()).hasSize(5).containsOnly(8000L);
    }
  }

  /** Blocks of four shards, in tasks of two blocks, or layer by layer, two tasks at a time. */
  private BenchPlan plan(int blocks, long blockSize, boolean direct, boolean layerwise) {
    BlockLayout layout = BlockLayout.uniform(blockSize / 4, blockSize / 4, blockSize);
    UcmConfig config = UcmConfig.of("Posix", Map.of());
    return new BenchPlan(config, layout, direct, folder, blocks, 2, layerwise, 2, 7, 0, 1, 2, 0);
  }

  @Test
  void saysThatAFileIsMissing() throws Exception {
    try (BenchThreads threads = new BenchThreads(1);
        FileLimit limit = new FileLimit(folder, plan(2, 100, false, false), threads)) {
      limit.round(0);
      assertThatThrownBy(limit::read)
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageContaining("0-0");
    }
  }

  private List<Long> sizes() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).map(file -> file.toFile().length()).toList();
    }
  }
}
