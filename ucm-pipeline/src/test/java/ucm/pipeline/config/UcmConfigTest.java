package ucm.pipeline.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.StoreConfig;
import ucm.pipeline.RecordingStore;
import ucm.pipeline.catalog.NearestName;
import ucm.pipeline.catalog.StoreCatalog;

class UcmConfigTest {

  private final StoreCatalog catalog = RecordingStore.catalog(new ArrayList<>());

  private static UcmConfig seed(String name) {
    return UcmConfig.parse(name, Resources.text("seeds/" + name));
  }

  @Test
  void readsTheSeedOfThePipelineStore() {
    UcmConfig config = seed("pipeline_store.yaml");
    assertThat(config.check(catalog).text()).isEqualTo("0 errors, 0 warnings");
    assertThat(config.connectorName()).isEqualTo("UcmPipelineStore");
    assertThat(config.pipeline()).hasToString("Cache|Posix");
    StoreConfig values = config.storeConfig();
    assertThat(values.get(CommonKeys.STORAGE_BACKENDS)).containsExactly("/mnt/test");
    assertThat(values.get(CommonKeys.IO_DIRECT)).isFalse();
    assertThat(values.origin(CommonKeys.IO_DIRECT)).hasToString("pipeline_store.yaml:6:18");
    assertThat(config.settings().useLayerwise()).isTrue();
  }

  @Test
  void readsTheSeedOfTheNfsStore() {
    UcmConfig config = seed("nfs_store.yaml");
    assertThat(config.check(catalog).text()).isEqualTo("0 errors, 0 warnings");
    assertThat(config.connectorName()).isEqualTo("UcmNfsStore");
    assertThat(config.pipeline()).hasToString("Nfs");
    assertThat(config.settings().enableEventSync())
        .as("the default is true, but not with UcmNfsStore")
        .isFalse();
  }

  @Test
  void readsTheSeedOfTheDs3fsStoreWhereThatStoreIsFound() {
    UcmConfig config = seed("ds3fs_store.yaml");
    Map<String, Supplier<Store>> stores = new HashMap<>();
    stores.put("Cache", () -> catalog.create("Cache"));
    List<ConfigKey<?>> keys = List.of(CommonKeys.STORAGE_BACKENDS);
    stores.put("Ds3fs", () -> new RecordingStore("Ds3fs", keys, new ArrayList<>()));
    assertThat(config.check(StoreCatalog.of(stores)).text()).isEqualTo("0 errors, 0 warnings");
    assertThat(config.check(catalog).text())
        .isEqualTo(
            """
            ds3fs_store.yaml:4:23: error: store_pipeline: there is no stage Ds3fs; Found: Cache, Fake, Nfs, Posix
            1 error, 0 warnings\
            """);
  }

  @ParameterizedTest
  @ValueSource(strings = {"lmcache_3fs_1.yaml", "lmcache_3fs_2.yaml"})
  void saysThatTheSeedsOfLmCacheAreNotForUcm(String name) {
    assertThat(seed(name).check(catalog).text())
        .isEqualTo(
            name
                + ": error: is a configuration of LMCache (it has remote_storage_plugins); UCM"
                + " needs ucm_connectors\n"
                + "1 error, 0 warnings");
    assertThatThrownBy(() -> seed(name).pipeline()).isInstanceOf(ConfigException.class);
  }

  @Test
  void namesTheDirectoriesOfAnUpperTierTooAndReplacesThem() {
    UcmConfig config =
        UcmConfig.of(
            "Posix|Nfs",
            Map.of("posix_storage_backends", "/a:/b", "storage_backends", List.of("/shared")));
    assertThat(config.directories())
        .isEqualTo(
            Map.of(
                "posix_storage_backends",
                List.of("/a", "/b"),
                "storage_backends",
                List.of("/shared")));
    assertThat(config.withDirectories(path -> "/new" + path, "test").directories())
        .isEqualTo(
            Map.of(
                "posix_storage_backends",
                List.of("/new/a", "/new/b"),
                "storage_backends",
                List.of("/new/shared")));
    assertThat(UcmConfig.of("Fake", Map.of()).directories()).isEmpty();
  }

  @Test
  void relativePathsBeginAtTheFolderOfTheFile(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("ucm.yaml");
    Files.writeString(
        file,
        """
        ucm_connector_name: UcmPipelineStore
        ucm_connector_config:
          store_pipeline: Posix|Nfs
          posix_storage_backends: [near, /whole, "../up"]
          storage_backends: far:/whole/too
        metrics_config_path: metrics.yaml
        """);
    UcmConfig read = UcmConfig.read(file);
    assertThat(read.directories())
        .isEqualTo(
            Map.of(
                "posix_storage_backends",
                List.of(folder + "/near", "/whole", folder.getParent() + "/up"),
                "storage_backends",
                List.of(folder + "/far", "/whole/too")));
    assertThat(read.settings().metricsConfigPath()).contains(folder.resolve("metrics.yaml"));
    assertThat(read.storeConfig().origin(CommonKeys.STORAGE_BACKENDS)).hasToString(file + ":5:21");
    String text = Files.readString(file);
    assertThat(UcmConfig.received(file.toString(), text)).isEqualTo(read);
    assertThatThrownBy(() -> UcmConfig.received("launch line", text))
        .hasMessageContaining("launch line:4:27: error: posix_storage_backends: found")
        .hasMessageContaining("launch line:5:21: error: storage_backends: found")
        .hasMessageContaining("launch line:6:22: error: metrics_config_path: found");
  }

  @Test
  void keysOfTheOriginalThatDoNothingHereAreAcceptedWithTheReason() {
    List<String> keys =
        List.of(
            "compress_ratio",
            "data_type",
            "decompress_thread_num",
            "cache_io_aggregation",
            "cache_sdma_direct",
            "posix_gc_task_timeout_ms",
            "use_pmr",
            "pmr_config",
            "log_level");
    for (String key : keys) {
      UcmConfig config = UcmConfig.of("Cache|Posix", Map.of("storage_backends", "/a", key, 1));
      assertThat(config.check(catalog).text())
          .contains("warning: " + key + ": is ignored: ", "0 errors, 1 warning");
    }
    UcmConfig top = UcmConfig.of("Posix", Map.of("storage_backends", "/a"));
    assertThat(top.withTopLevel(Map.of("log_level", "debug"), "test").check(catalog).text())
        .contains("UC_LOGGER_LEVEL", "0 errors, 1 warning");
  }

  @Test
  void theMarkThatSomeEditorsBeginAFileWithIsNoPartOfItsFirstKey() {
    String text =
        "\uFEFFuse_layerwise: false\n"
            + "ucm_connector_name: UcmPipelineStore\n"
            + "ucm_connector_config: {store_pipeline: Fake}\n";
    assertThat(UcmConfig.parse("f", text).settings().useLayerwise()).isFalse();
  }

  @Test
  void bothShapesMeanTheSame() {
    String flat =
        """
        ucm_connector_name: UcmPipelineStore
        ucm_connector_config: {store_pipeline: Posix, storage_backends: "/mnt/a:/mnt/b"}
        hit_ratio: .25
        """;
    String listed =
        """
        ucm_connectors:
        - ucm_connector_config:
            storage_backends:
            - /mnt/a
            - /mnt/b
            store_pipeline: 'Posix'
          ucm_connector_name: "UcmPipelineStore"
        hit_ratio: 0.25
        """;
    for (String yaml : List.of(flat, listed)) {
      UcmConfig config = UcmConfig.parse("f", yaml);
      assertThat(config.check(catalog).hasErrors()).isFalse();
      assertThat(config.pipeline().stages()).containsExactly("Posix");
      assertThat(config.storeConfig().get(CommonKeys.STORAGE_BACKENDS))
          .containsExactly("/mnt/a", "/mnt/b");
      assertThat(config.settings().hitRatio()).hasValue(0.25);
    }
  }

  @Test
  void defaultsOfTheTopLevelAreThoseOfTheOriginal() {
    assertThat(UcmConfig.of("Fake", Map.of()).settings())
        .isEqualTo(
            new ConnectorSettings(
                true,
                true,
                OptionalDouble.empty(),
                0,
                0,
                false,
                false,
                false,
                "md5-pickle",
                ModelFingerprint.WEIGHTS,
                Optional.empty(),
                Optional.empty()));
  }

  @Test
  void everyTopLevelKeyIsRead() {
    Map<String, Object> values =
        Map.ofEntries(
            Map.entry("use_layerwise", false),
            Map.entry("enable_event_sync", "no"),
            Map.entry("hit_ratio", 1),
            Map.entry("persist_token_threshold", 128),
            Map.entry("load_tokens_threshold", 2048),
            Map.entry("save_decode_blocks", true),
            Map.entry("enable_record_traces", true),
            Map.entry("use_lite", true),
            Map.entry("block_hasher", "md5-pickle"),
            Map.entry("model_fingerprint", "path"),
            Map.entry("metrics_config_path", "/etc/ucm/metrics.yaml"),
            Map.entry("serve_log_level", "debug"));
    UcmConfig config = UcmConfig.of("Fake", Map.of()).withTopLevel(values, "command line");
    assertThat(values).hasSameSizeAs(ConnectorSettings.TOP_LEVEL);
    assertThat(config.check(catalog).text()).endsWith("0 errors, 0 warnings");
    assertThat(config.settings())
        .isEqualTo(
            new ConnectorSettings(
                false,
                false,
                OptionalDouble.of(1),
                128,
                2048,
                true,
                true,
                true,
                "md5-pickle",
                ModelFingerprint.PATH,
                Optional.of(Path.of("/etc/ucm/metrics.yaml")),
                Optional.of("debug")));
  }

  @Test
  void valuesOfTheEngineReplaceThoseOfTheFile() {
    UcmConfig config =
        seed("pipeline_store.yaml")
            .with(Map.of("io_direct", true, "timeout_ms", 0), "command line");
    assertThat(config.storeConfig().get(CommonKeys.IO_DIRECT)).isTrue();
    assertThat(config.storeConfig().origin(CommonKeys.IO_DIRECT))
        .isEqualTo(ConfigOrigin.of("command line"));
    assertThat(config.check(catalog).text())
        .isEqualTo(
            """
            command line: error: timeout_ms: found 0; allowed is an integer, 1 to 86400000 (ms) [Cache, Posix]
            1 error, 0 warnings\
            """);
  }

  @Test
  void eachFindingCarriesItsPartsForJson() {
    UcmConfig config =
        UcmConfig.parse(
            "f",
            """
            ucm_connector_name: UcmPipelineStore
            ucm_connector_config:
              store_pipeline: Cache
              cache_stream_number: 33
              cache_stream_numbr: 3
            """);
    Map<String, Object> data = config.check(catalog).data();
    assertThat(data).containsEntry("errors", 2).containsEntry("warnings", 0);
    assertThat((List<?>) data.get("findings"))
        .hasToString(
            "[{severity=error, source=f, line=4, column=24, key=cache_stream_number,"
                + " stages=[Cache], message=found 33; allowed is an integer, 1 to 32 (streams),"
                + " value=33, allowed=an integer, 1 to 32 (streams), nearest=},"
                + " {severity=error, source=f, line=5, column=3, key=cache_stream_numbr, stages=[],"
                + " message=is no known key; did you mean cache_stream_number?, value=3, allowed=,"
                + " nearest=cache_stream_number}]");
  }

  @Test
  void aStageThatFailsToCheckIsAFindingAndNoCrash() {
    StoreCatalog broken =
        StoreCatalog.of(
            Map.of(
                "Odd",
                () ->
                    new RecordingStore("Odd", List.of(), new ArrayList<>())
                        .trap(RecordingStore.failsAt("configure"))));
    assertThat(UcmConfig.of("Odd", Map.of()).check(broken).text())
        .isEqualTo(
            """
            engine: error: could not be checked: no configure today [Odd]
            1 error, 0 warnings\
            """);
  }

  @Test
  void aStageThatCannotBeMadeIsAFindingAndNoCrash() {
    StoreCatalog broken =
        StoreCatalog.of(
            Map.of(
                "Odd",
                () -> {
                  throw new IllegalStateException("boom");
                }));
    assertThat(UcmConfig.of("Odd", Map.of()).check(broken).text())
        .isEqualTo(
            """
            engine: error: the store Odd in given by the program cannot be created: java.lang.IllegalStateException: boom [Odd]
            1 error, 0 warnings\
            """);
  }

  @Test
  void valuesOfTheEngineAreWelcomeWhetherOrNotAStageNeedsThem() {
    Map<String, Object> values =
        Map.of("block_size", 1024, "unique_id", "a", "local_rank_size", 8, "device_id", 0);
    assertThat(UcmConfig.of("Fake", values).check(catalog).text())
        .isEqualTo("0 errors, 0 warnings");
  }

  @Test
  void aPathThatIsNoneIsAFinding() {
    UcmConfig config =
        UcmConfig.parse(
            "f",
            """
            ucm_connector_name: UcmPipelineStore
            ucm_connector_config: {store_pipeline: Fake}
            metrics_config_path: "a\\0b"
            """);
    assertThat(config.check(catalog).text())
        .startsWith("f:3:22: error: metrics_config_path: is no path: Nul character not allowed");
  }

  @Test
  void aKeyFarFromEveryKnownOneGetsNoSuggestion() {
    assertThat(NearestName.among(List.of("io_direct", "timeout_ms"), "zzzzzzzzz")).isEmpty();
    assertThat(NearestName.among(List.of("io_direct", "timeout_ms"), "IO_DIRETC"))
        .isEqualTo("io_direct");
    assertThat(NearestName.among(List.of("io_direct"), "x".repeat(1_000_000))).isEmpty();
  }

  @Test
  void theEffectiveConfigurationNamesEveryKeyWithItsOrigin() {
    EffectiveConfig effective =
        seed("pipeline_store.yaml").with(Map.of("block_size", 1024), "engine").effective(catalog);
    assertThat(effective.text()).isEqualTo(Resources.text("effective/pipeline_store.txt"));
    assertThat(effective.entries())
        .contains(
            new EffectiveConfig.Entry(
                "Posix", "io_direct", "false", new ConfigOrigin("pipeline_store.yaml", 6, 18)),
            new EffectiveConfig.Entry("Posix", "block_size", "1024", ConfigOrigin.of("engine")),
            new EffectiveConfig.Entry(
                "Cache", "cache_stream_number", "4", ConfigOrigin.of("default")));
    assertThat(effective.data().toString())
        .contains("{section=pipeline, key=store_pipeline, value=Cache|Posix, source=pipe");
  }

  @Test
  void theEffectiveConfigurationKnowsTheRuleOfTheNfsStore() {
    assertThat(seed("nfs_store.yaml").effective(catalog).text())
        .containsPattern("enable_event_sync +false +default of UcmNfsStore")
        .contains("transferStreamNumber  ");
  }
}
