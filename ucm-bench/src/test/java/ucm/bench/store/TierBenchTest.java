package ucm.bench.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.pipeline.config.UcmConfig;

class TierBenchTest {

  /** The key names directories of Posix also where it is the last stage. */
  @ParameterizedTest
  @ValueSource(strings = {"Posix", "Cache|Posix", "Cache|Nfs"})
  void opensNothingWithoutAStageBelowTheDirectories(String pipeline) {
    UcmConfig config =
        UcmConfig.of(
            pipeline,
            Map.of("posix_storage_backends", "/nowhere/a", "storage_backends", "/nowhere/b"));
    assertThat(
            TierBench.open(
                config,
                folder -> {
                  throw new AssertionError(folder);
                },
                (other, _) -> {
                  throw new AssertionError(other);
                }))
        .isEmpty();
  }
}
