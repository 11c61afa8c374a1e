package ucm.store.cache.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.platform.device.EngineDevice;

final class CacheConfigTest {

  private static final Map<String, Object> ENGINE = Map.of("block_size", 1 << 20, "device_id", 0);

  @TempDir private static Path root;

  private static HostMemory memory(long gib) {
    try {
      Files.createDirectories(root.resolve("proc"));
      String text = "MemTotal: " + (gib << 20) + " kB\nMemAvailable: " + (gib << 20) + " kB\n";
      Files.writeString(root.resolve("proc/meminfo"), text);
      return new HostMemory(root);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void theDefaultIsAQuarterOfTheMemoryAtMost() {
    assertThat(CacheConfig.from(StoreConfig.of(ENGINE), memory(1024)).capacityGb()).isEqualTo(32);
    StoreConfig small = StoreConfig.of(ENGINE);
    assertThat(CacheConfig.from(small, memory(23)).capacityGb()).isEqualTo(5.7);
    assertThat(small.problems()).isEmpty();
    assertThat(small.settled().get("cache_buffer_capacity_gb").raw()).isEqualTo(5.7);
    StoreConfig suggested = StoreConfig.of(ENGINE).withSuggestions(Map.of("buffer_size", 64));
    assertThat(CacheConfig.from(suggested, memory(23)).capacityGb()).isEqualTo(5.7);
    Map<String, Object> shared = new HashMap<>(ENGINE);
    shared.put("share_buffer_enable", true);
    assertThat(CacheConfig.from(StoreConfig.of(shared), memory(24)).capacityGb()).isEqualTo(6);
    Map<String, Object> ranks = new HashMap<>(ENGINE);
    ranks.put("local_rank_size", 2);
    assertThat(CacheConfig.from(StoreConfig.of(ranks), memory(24)).capacityGb()).isEqualTo(3);
  }

  @Test
  void aSizeThatTheMachineDoesNotHaveIsToldWithTheLineToWrite() {
    for (String key : List.of("cache_buffer_capacity_gb", "buffer_size")) {
      Map<String, Object> settings = new HashMap<>(ENGINE);
      settings.put(key, 256);
      StoreConfig config = StoreConfig.of(settings);
      assertThat(CacheConfig.from(config, memory(23)).capacityGb()).isEqualTo(256);
      assertThat(config.problems()).hasSize(1);
      assertThat(config.problems().getFirst().isError()).isFalse();
      assertThat(config.problems().getFirst().message())
          .isEqualTo(
              "is 256 GiB, and this machine has 23: no pipeline opens here with it; write"
                  + " cache_buffer_capacity_gb: 5.7");
      StoreConfig fits = StoreConfig.of(settings);
      assertThat(CacheConfig.from(fits, memory(256)).capacityGb()).isEqualTo(256);
      assertThat(fits.problems()).isEmpty();
    }
  }

  @Test
  void defaultsAreAsDocumented() {
    StoreConfig config = StoreConfig.of(ENGINE);
    assertThat(CacheConfig.from(config, memory(1024)))
        .isEqualTo(
            new CacheConfig(
                32,
                CachePolicy.LRU,
                new EngineDevice.Choice("Cache", "cache_device", "auto", 0, 4, List.of()),
                false,
                30_000,
                "ucm",
                1,
                false,
                false,
                false,
                BlockLayout.uniform(1 << 20, 1 << 20, 1 << 20)));
    assertThat(config.problems()).isEmpty();
    assertThat(config.get(CommonKeys.WAITING_QUEUE_DEPTH)).isEqualTo(8192);
    assertThat(config.get(CommonKeys.RUNNING_QUEUE_DEPTH)).isEqualTo(524_288);
    assertThat(CacheConfig.CAPACITY_GB.defaultText())
        .isEqualTo(
            "256; when not shared 32, or what a lower stage suggests; a quarter of the memory at"
                + " most");
    assertThat(CacheConfig.SHARE.defaultValue()).isFalse();
    assertThat(CacheConfig.USE_GDR.defaultValue()).isFalse();
    assertThat(CacheConfig.from(StoreConfig.of(Map.of())).device().deviceId()).isEqualTo(-1);
  }

  @Test
  void everyKeyIsRead() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("cache_buffer_capacity_gb", 0.5);
    settings.put("share_buffer_enable", true);
    settings.put("cache_buffer_divided", true);
    settings.put("cache_buffer_lent", true);
    settings.put("waiting_queue_depth", 16);
    settings.put("running_queue_depth", 64);
    settings.put("cache_stream_number", 32);
    settings.put("cache_policy", "s3fifo");
    settings.put("cache_device", "cuda");
    settings.put("use_gdr", false);
    settings.put("cache_load_backend_only", true);
    settings.put("timeout_ms", 1000);
    settings.put("device_id", 7);
    settings.put("unique_id", "engine-1");
    settings.put("local_rank_size", 8);
    settings.put("cpu_affinity_cores", List.of(1));
    settings.put("tensor_size_list", List.of(1024, 3072));
    settings.put("shard_size", 4096);
    settings.put("block_size", 8192);
    StoreConfig config = StoreConfig.of(settings);
    assertThat(CacheConfig.from(config))
        .isEqualTo(
            new CacheConfig(
                0.5,
                CachePolicy.S3FIFO,
                new EngineDevice.Choice("Cache", "cache_device", "cuda", 7, 32, List.of(1L)),
                true,
                1000,
                "engine-1",
                8,
                true,
                true,
                true,
                BlockLayout.of(new long[] {1024, 3072}, 8192)));
    assertThat(config.problems()).isEmpty();
    Set<String> declared =
        CacheConfig.KEYS.stream().map(ConfigKey::name).collect(Collectors.toSet());
    settings.put("tensor_size", 4096);
    settings.put("buffer_size", 1);
    assertThat(declared).isEqualTo(settings.keySet());
  }

  @Test
  void takesTheSuggestionOfALowerStageWhereNoSizeIsSet() {
    Map<String, Object> settings = new HashMap<>();
    Map<String, Object> suggested = Map.of("buffer_size", 64);
    assertThat(capacityGb(settings, suggested)).isEqualTo(64);
    settings.put("buffer_size", 3);
    assertThat(capacityGb(settings, suggested)).isEqualTo(3);
    settings.put("cache_buffer_capacity_gb", 2);
    settings.remove("buffer_size");
    assertThat(capacityGb(settings, suggested)).isEqualTo(2);
    settings.remove("cache_buffer_capacity_gb");
    settings.put("share_buffer_enable", true);
    assertThat(capacityGb(settings, suggested)).isEqualTo(256);
  }

  private static double capacityGb(Map<String, Object> settings, Map<String, Object> suggested) {
    return CacheConfig.from(StoreConfig.of(settings).withSuggestions(suggested), memory(1024))
        .capacityGb();
  }

  @Test
  void takesTheSizeByAnotherName() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("buffer_size", 3);
    assertThat(CacheConfig.from(StoreConfig.of(settings)).capacityGb()).isEqualTo(3);
    settings.put("buffer_size", 3L << 29);
    assertThat(CacheConfig.from(StoreConfig.of(settings)).capacityGb()).isEqualTo(1.5);
    settings.put("cache_buffer_capacity_gb", 2);
    StoreConfig both = StoreConfig.of(settings);
    assertThat(CacheConfig.from(both).capacityGb()).isEqualTo(2);
    assertThat(both.problems().getFirst().message()).contains("no effect");
    assertThat(
            CacheConfig.from(StoreConfig.of(Map.of("store_pipeline", "Cache|Posix")), memory(1024))
                .capacityGb())
        .isEqualTo(32);
  }

  @Test
  void everyProblemIsReportedAtOnce() {
    List<ConfigProblem> problems =
        problems(
            Map.of(
                "cache_buffer_capacity_gb",
                "plenty",
                "share_buffer_enable",
                "perhaps",
                "use_gdr",
                true,
                "cache_stream_number",
                33,
                "timeout_ms",
                0));
    assertThat(problems)
        .extracting(ConfigProblem::key)
        .containsExactlyInAnyOrder(
            "cache_buffer_capacity_gb",
            "share_buffer_enable",
            "use_gdr",
            "cache_stream_number",
            "timeout_ms");
    assertThat(problems).allMatch(ConfigProblem::isError);
  }

  @Test
  void aPolicyOfOlderConfigurationsIsTakenForTheDefault() {
    Map<String, Object> settings = new HashMap<>(ENGINE);
    settings.put("cache_policy", "aged_lru");
    assertThat(CacheConfig.from(StoreConfig.of(settings)).policy()).isEqualTo(CachePolicy.LRU);
    ConfigProblem told = problems(settings).getFirst();
    assertThat(told.isError()).isFalse();
    assertThat(told.message()).contains("lru is used");
  }

  @Test
  void whatIsNotAvailableYetSaysWhatToSet() {
    assertThat(problems(Map.of("use_gdr", true)).getFirst().message())
        .contains("nvidia_peermem")
        .contains("ucm doctor --config")
        .contains("set it to false");
  }

  @Test
  void capacityThatHoldsNoShardIsAnErrorAndLessThanABlockAWarning() {
    ConfigProblem none = problems(Map.of("cache_buffer_capacity_gb", 0.0001)).getFirst();
    assertThat(none.isError()).isTrue();
    assertThat(none.message()).contains("holds no shard of 1048576 bytes");
    ConfigProblem few =
        problems(Map.of("cache_buffer_capacity_gb", 0.0001, "shard_size", 4096)).getFirst();
    assertThat(few.isError()).isFalse();
    assertThat(few.message()).contains("holds 26 shards").contains("256 of one block");
  }

  @Test
  void capacityOfMoreSlotsThanCanBeNumberedIsAnError() {
    ConfigProblem many =
        problems(Map.of("cache_buffer_capacity_gb", 1 << 20, "shard_size", 4096)).getLast();
    assertThat(many.isError()).isTrue();
    assertThat(many.message()).contains("at most 2147483647");
  }

  private static List<ConfigProblem> problems(Map<String, Object> settings) {
    Map<String, Object> all = new HashMap<>(ENGINE);
    all.putAll(settings);
    StoreConfig config = StoreConfig.of(all);
    CacheConfig.from(config);
    return config.problems();
  }
}
