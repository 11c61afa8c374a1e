package ucm.dist;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileLimitTest {

  @TempDir private Path folder;

  @Test
  void writesOneFileABlockAndReadsItBack() throws Exception {
    try (BenchThreads threads = new BenchThreads(2);
        FileLimit limit = new FileLimit(folder, 5, 10_000, false, threads)) {
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
        FileLimit limit = new FileLimit(folder, 3, 10_000, true, threads)) {
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
  void saysThatAFileIsMissing() {
    try (BenchThreads threads = new BenchThreads(1);
        FileLimit limit = new FileLimit(folder, 2, 100, false, threads)) {
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
