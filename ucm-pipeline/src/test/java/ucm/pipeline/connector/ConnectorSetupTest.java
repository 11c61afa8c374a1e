package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.StoreMetrics;
import ucm.api.config.ConfigKey;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;

class ConnectorSetupTest {

  private static final ConfigKey<Boolean> SHARE =
      ConfigKey.flag("share_buffer_enable").defaultTo(false);

  private static Optional<Boolean> shared(
      EngineSpec spec, String pipeline, Map<String, ?> settings, int deviceId) {
    UcmConfig config = UcmConfig.of(pipeline, settings);
    ConnectorSetup setup = ConnectorSetup.of(config, StoreCatalog.find(), spec);
    return setup.configOf(deviceId, spec.kv()).storeConfig().find(SHARE);
  }

  @ParameterizedTest
  @ValueSource(strings = {"Cache|Posix", "Cache", "Relay|Cache|Posix"})
  void workersOfAnMlaModelShareTheBufferOfTheCache(String pipeline) {
    assertThat(shared(TestEngines.mla(2), pipeline, Map.of(), 0)).contains(true);
    assertThat(shared(TestEngines.mla(2), pipeline, Map.of(), 1)).contains(true);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatIsConfiguredAboutSharingStays(boolean configured) {
    Map<String, Boolean> settings = Map.of(SHARE.name(), configured);
    assertThat(shared(TestEngines.mla(2), "Cache|Posix", settings, 0)).contains(configured);
    assertThat(shared(TestEngines.gqa(2), "Cache|Posix", settings, 0)).contains(configured);
  }

  @Test
  void othersDoNotShare() {
    assertThat(shared(TestEngines.gqa(2), "Cache|Posix", Map.of(), 0)).as("no MLA").isEmpty();
    assertThat(shared(TestEngines.mla(2), "Posix", Map.of(), 0)).as("no Cache").isEmpty();
    assertThat(shared(TestEngines.mla(2), "Cache|Posix", Map.of(), -1)).as("scheduler").isEmpty();
  }

  @Test
  void refusesEnginesThatDoNotFit() {
    KvLayout uneven = KvLayout.of(new long[][] {{8, 8}, {16}});
    EngineSpec spec = new EngineSpec("e", "m", "d", 1, false, 4, uneven);
    assertThat(
            catchThrowable(
                () -> TestEngines.setup(spec).worker(0, 0, new RankMemory(uneven, 2).caches())))
        .hasMessageContaining("set use_layerwise to false");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new EngineSpec("e", "m", "d", 1, false, 13_001, uneven))
        .withMessageContaining("1 to 13000 tokens; found 13001");
    assertThat(
            catchThrowable(
                () ->
                    TestEngines.setup(TestEngines.gqa(1), TestEngines.top(), StoreMetrics.NONE)
                        .worker(0, 0, new RankMemory(uneven, 2).caches())))
        .hasMessageContaining("is not what the engine said it has");
  }
}
