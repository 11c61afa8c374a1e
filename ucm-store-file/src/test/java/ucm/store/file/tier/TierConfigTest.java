package ucm.store.file.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import ucm.api.config.StoreConfig;
import ucm.store.file.LocalFileStore;

/** The keys of an upper tier. */
final class TierConfigTest {

  private static StoreConfig config(Map<String, Object> more) {
    Map<String, Object> all = new TreeMap<>(more);
    all.putIfAbsent("storage_backends", "/shared");
    all.put("block_size", 4096);
    return StoreConfig.of(all);
  }

  private static TierConfig read(Map<String, Object> more) {
    return TierConfig.from(LocalFileStore.KIND, config(more)).orElseThrow();
  }

  @Test
  void defaults() {
    TierConfig config = read(Map.of());
    assertThat(config.writesThrough()).isTrue();
    assertThat(config.admitsAll()).isTrue();
    assertThat(config.stagingBytes()).isEqualTo(256L << 20);
    assertThat(config.files().directories()).containsExactly("/shared");
  }

  @Test
  void everyKey() {
    TierConfig config =
        read(
            Map.of(
                "local_storage_backends",
                "/a:/b",
                "local_write_policy",
                "write_back",
                "local_admission",
                "second_use",
                "local_staging_mb",
                2));
    assertThat(config.writesThrough()).isFalse();
    assertThat(config.admitsAll()).isFalse();
    assertThat(config.stagingBytes()).isEqualTo(2L << 20);
    assertThat(config.files().directories()).containsExactly("/a", "/b");
  }

  @Test
  void directoriesOfTheStagesBelowAreSharedUnlessOthersAreNamed() {
    assertThat(TierConfig.sharesDirectories(LocalFileStore.KIND, config(Map.of()))).isTrue();
    assertThat(shares("/a:/shared")).isTrue();
    assertThat(shares("/a:/b")).isFalse();
  }

  private static boolean shares(String own) {
    StoreConfig config = config(Map.of("local_storage_backends", own));
    return TierConfig.sharesDirectories(LocalFileStore.KIND, config);
  }

  @Test
  void badValuesAreReportedTogether() {
    StoreConfig config = config(Map.of("local_write_policy", "later", "local_staging_mb", 0));
    assertThat(TierConfig.from(LocalFileStore.KIND, config)).isEmpty();
    assertThat(config.problems())
        .extracting(problem -> problem.key())
        .contains("local_write_policy", "local_staging_mb");
  }
}
