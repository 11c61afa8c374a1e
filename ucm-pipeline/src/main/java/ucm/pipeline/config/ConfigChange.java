package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
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
  public record Values(@Nullable Object from, @Nullable Object to) {}

  /**
   * Compares.
   *
   * @param keys of the stages of the pipeline in use
   */
  public static ConfigChange of(
      UcmConfig inUse, UcmConfig other, Collection<? extends ConfigKey<?>> keys) {
    Map<String, Values> live = new LinkedHashMap<>();
    Map<String, Values> fixed = new LinkedHashMap<>();
    List<ConfigKey<?>> liveKeys = new ArrayList<>();
    Optional<PipelineSpec> stages = inUse.findPipeline(new ArrayList<>());
    Optional<PipelineSpec> asked = other.findPipeline(new ArrayList<>());
    if (!stages.equals(asked)) {
      fixed.put(
          ConnectorSettings.STORE_PIPELINE.name(),
          new Values(
              stages.map(PipelineSpec::toString).orElse(null),
              asked.map(PipelineSpec::toString).orElse(null)));
    }
    compare(
        inUse.topLevelConfig(),
        other.topLevelConfig(),
        ConnectorSettings.TOP_LEVEL,
        live,
        fixed,
        liveKeys);
    compare(inUse.storeConfig(), other.storeConfig(), keys, live, fixed, liveKeys);
    return new ConfigChange(live, fixed, inUse.withValuesOf(other, liveKeys));
  }

  /** The configuration in use, also of a key that turned out not to be taken. */
  public UcmConfig without(UcmConfig inUse, Collection<ConfigKey<?>> keys) {
    return merged.withValuesOf(inUse, keys);
  }

  private static void compare(
      StoreConfig from,
      StoreConfig to,
      Collection<? extends ConfigKey<?>> keys,
      Map<String, Values> live,
      Map<String, Values> fixed,
      List<ConfigKey<?>> liveKeys) {
    for (ConfigKey<?> key : keys) {
      Values values = new Values(value(from, key), value(to, key));
      if (key.isLive()) {
        liveKeys.add(key);
      }
      if (!Objects.equals(values.from, values.to)) {
        (key.isLive() ? live : fixed).put(key.name(), values);
      }
    }
  }

  private static <T> @Nullable T value(StoreConfig config, ConfigKey<T> key) {
    return config.find(key).orElse(key.defaultValue());
  }
}
