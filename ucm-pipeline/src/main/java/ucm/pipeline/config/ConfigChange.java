package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.PipelineSpec;

/**
 * What another configuration would change of one that is in use. Keys whose default has the value that the
 * other one sets have not changed.
 *
 * @param live by name, what may change in an open pipeline
 * @param fixed by name, what may not
 * @param merged the configuration in use with the live values of the other one
 */
public record ConfigChange(Map<String, Values> live, Map<String, Values> fixed, UcmConfig merged) {

  /**
   * The values of a key.
   *
   * @param from the one in use; null when it has none
   * @param to the one asked for
   */
  public record Values(@Nullable Object from, @Nullable Object to) {

    private boolean differ() {
      return !Objects.equals(from, to);
    }
  }

  /**
   * Compares.
   *
   * @param keys of the stages of the pipeline in use
   */
  public static ConfigChange of(
      UcmConfig inUse, UcmConfig other, Collection<? extends ConfigKey<?>> keys) {
    Map<ConfigKey<?>, Values> all = new LinkedHashMap<>();
    for (ConfigKey<?> key : ConnectorSettings.TOP_LEVEL) {
      all.put(key, values(key, inUse.topLevelConfig(), other.topLevelConfig()));
    }
    for (ConfigKey<?> key : keys) {
      all.put(key, values(key, inUse.storeConfig(), other.storeConfig()));
    }
    Map<String, Values> live = new LinkedHashMap<>();
    Map<String, Values> fixed = new LinkedHashMap<>();
    Values stages = new Values(stages(inUse), stages(other));
    if (stages.differ()) {
      fixed.put(ConnectorSettings.STORE_PIPELINE.name(), stages);
    }
    all.forEach(
        (key, values) -> {
          if (values.differ()) {
            (key.isLive() ? live : fixed).put(key.name(), values);
          }
        });
    List<ConfigKey<?>> liveKeys = new ArrayList<>(all.keySet());
    liveKeys.removeIf(key -> !key.isLive());
    return new ConfigChange(live, fixed, inUse.withValuesOf(other, liveKeys));
  }

  /** The configuration in use, also of a key that turned out not to be taken. */
  public UcmConfig without(UcmConfig inUse, Collection<ConfigKey<?>> keys) {
    return merged.withValuesOf(inUse, keys);
  }

  private static <T> Values values(ConfigKey<T> key, StoreConfig from, StoreConfig to) {
    return new Values(
        from.find(key).orElse(key.defaultValue()), to.find(key).orElse(key.defaultValue()));
  }

  private static @Nullable String stages(UcmConfig config) {
    return config.findPipeline(new ArrayList<>()).map(PipelineSpec::toString).orElse(null);
  }
}
