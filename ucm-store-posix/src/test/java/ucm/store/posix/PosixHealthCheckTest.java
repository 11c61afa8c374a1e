package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.config.StoreConfig;

class PosixHealthCheckTest {

  @TempDir private Path folder;

  @Test
  void runsOnlyWhereThePipelineHasPosix() {
    StoreConfig config = StoreConfig.of(Map.of("storage_backends", folder.toString()));
    assertThat(new PosixHealthCheck().run(config, List.of("Cache", "Ds3fs"))).isEmpty();
    assertThat(new PosixHealthCheck().run(config, List.of("Cache", "Posix"))).isNotEmpty();
  }

  @Test
  void looksAtItsOwnDirectoriesWhereAnotherStageHasTheOthers() {
    StoreConfig config =
        StoreConfig.of(
            Map.of(
                "storage_backends",
                folder.resolve("shared").toString(),
                "posix_storage_backends",
                folder.resolve("local").toString()));
    assertThat(new PosixHealthCheck().run(config, List.of("Posix", "Nfs")))
        .extracting(finding -> finding.subject())
        .contains("directory " + folder.resolve("local"))
        .doesNotContain("directory " + folder.resolve("shared"));
  }
}
