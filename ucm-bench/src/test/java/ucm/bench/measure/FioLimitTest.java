package ucm.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.pipeline.config.UcmConfig;

class FioLimitTest {

  @TempDir private Path folder;

  private BenchPlan plan() {
    BlockLayout layout = BlockLayout.uniform(10_000, 10_000, 10_000);
    UcmConfig config = UcmConfig.of("Posix", Map.of());
    return new BenchPlan(config, layout, false, folder, 5, 2, false, 1, 7, 0, 1, 2, 0);
  }

  private Path script(String body) throws IOException {
    Path script = Files.createDirectories(folder.resolve("bin")).resolve("fio");
    Files.writeString(script, "#!/bin/sh\n" + body + "\n");
    return Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
  }

  @Test
  void readsTheSpeedsFromTheFieldsOfTheTerseLine() throws Exception {
    // Fields as fio 3.33 prints them: 7 is the speed of reads, 48 that of writes, in KiB/s.
    Path fio =
        script(
            """
            echo a warning
            printf '3;fio-3.33;ucm;0;0;16384;2000000;484'
            i=8; while [ $i -lt 46 ]; do printf ';0'; i=$((i+1)); done
            echo ';16384;1000000;533;30'
            """);
    FioResult result = new FioLimit(fio, plan(), folder.resolve("files")).run();
    assertThat(result).isEqualTo(new FioResult("fio-3.33", "psync", 1.024, 2.048));
    assertThat(result.toString()).contains("write 1.02 GB/s, read 2.05 GB/s");
  }

  @Test
  void saysWhatFioPrintedWhenItFails() throws Exception {
    Path fio = script("echo no such engine; exit 3");
    FioLimit limit = new FioLimit(fio, plan(), folder.resolve("files"));
    assertThatThrownBy(limit::run)
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining(fio.toString())
        .hasMessageContaining("ended with 3")
        .hasMessageContaining("no such engine");
  }

  @Test
  void findsFioOnThePathOrNot() throws Exception {
    assertThat(FioLimit.find(folder + "/none:" + folder)).isEmpty();
    Path fio = script("exit 0");
    assertThat(FioLimit.find(folder + ":" + folder + "/bin")).contains(fio);
  }

  @Test
  void measuresWithTheFioOfThisMachine() throws Exception {
    Optional<Path> fio = FioLimit.find(System.getenv().getOrDefault("PATH", ""));
    Assumptions.assumeTrue(fio.isPresent(), "fio is not installed");
    FioResult result = new FioLimit(fio.orElseThrow(), plan(), folder.resolve("files")).run();
    assertThat(result.writeGbs()).isPositive();
    assertThat(result.readGbs()).isPositive();
  }
}
