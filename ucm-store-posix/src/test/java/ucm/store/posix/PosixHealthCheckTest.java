package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.config.StoreConfig;

class PosixHealthCheckTest {

  @TempDir private Path folder;

  @Test
  void looksOnlyWhereThePipelineHasPosix() {
    Map<String, Object> config =
        Map.of("store_pipeline", "Cache|Ds3fs", "storage_backends", folder.toString());
    assertThat(new PosixHealthCheck().look(StoreConfig.of(config))).isEmpty();
    Map<String, Object> posix = new HashMap<>(config);
    posix.put("store_pipeline", "Cache|Posix");
    assertThat(new PosixHealthCheck().look(StoreConfig.of(posix))).isNotEmpty();
  }
}
