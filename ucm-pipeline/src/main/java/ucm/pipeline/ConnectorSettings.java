package ucm.pipeline;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalDouble;
import ucm.api.ConfigKey;
import ucm.api.StoreConfig;

/**
 * The top-level values of a configuration: how the engine side uses the pipeline.
 *
 * @param useLayerwise load and save layer by layer
 * @param enableEventSync a dump waits for an event instead of the whole device
 * @param hitRatio cap of the tokens taken from the cache, as a share of the prompt, in (0, 1]
 * @param persistTokenThreshold requests of fewer tokens skip look-up, load and dump
 * @param loadTokensThreshold load only when more tokens than this are found
 * @param enableRecordTraces one trace record per request
 * @param useLite metadata only
 * @param metricsConfigPath says which metrics are exported
 */
public record ConnectorSettings(
    boolean useLayerwise,
    boolean enableEventSync,
    OptionalDouble hitRatio,
    int persistTokenThreshold,
    int loadTokensThreshold,
    boolean enableRecordTraces,
    boolean useLite,
    Optional<Path> metricsConfigPath) {

  /** Reads and checks; faults are recorded in {@code config}. */
  static ConnectorSettings from(StoreConfig config, String connectorName) {
    boolean nfs = connectorName.equals(ConfigShape.NFS_STORE);
    boolean eventSync = config.get(ConnectorKeys.ENABLE_EVENT_SYNC);
    if (nfs && eventSync && config.isSet(ConnectorKeys.ENABLE_EVENT_SYNC)) {
      config.reject(
          ConnectorKeys.ENABLE_EVENT_SYNC,
          "is true; when using UcmNfsStore, enable_event_sync must be set to false or left out");
    }
    Optional<Double> ratio = config.find(ConnectorKeys.HIT_RATIO);
    if (ratio.isPresent() && ratio.get() == 0) {
      config.reject(
          ConnectorKeys.HIT_RATIO, "is 0; it must be more than 0, and unset means no cap");
    }
    ConnectorSettings settings =
        new ConnectorSettings(
            config.get(ConnectorKeys.USE_LAYERWISE),
            eventSync && !nfs,
            ratio.isPresent() ? OptionalDouble.of(ratio.get()) : OptionalDouble.empty(),
            config.get(ConnectorKeys.PERSIST_TOKEN_THRESHOLD),
            config.get(ConnectorKeys.LOAD_TOKENS_THRESHOLD),
            config.get(ConnectorKeys.ENABLE_RECORD_TRACES),
            config.get(ConnectorKeys.USE_LITE),
            metricsPath(config));
    settings.warnOfWhatNobodyActsOn(config);
    return settings;
  }

  /** This version has no engine side yet; who asks for what only that can do must not wait for it. */
  private void warnOfWhatNobodyActsOn(StoreConfig config) {
    warnIf(hitRatio.orElse(0) > 0, config, ConnectorKeys.HIT_RATIO);
    warnIf(persistTokenThreshold > 0, config, ConnectorKeys.PERSIST_TOKEN_THRESHOLD);
    warnIf(loadTokensThreshold > 0, config, ConnectorKeys.LOAD_TOKENS_THRESHOLD);
    warnIf(enableRecordTraces, config, ConnectorKeys.ENABLE_RECORD_TRACES);
    warnIf(useLite, config, ConnectorKeys.USE_LITE);
    warnIf(metricsConfigPath.isPresent(), config, ConnectorKeys.METRICS_CONFIG_PATH);
  }

  private static void warnIf(boolean set, StoreConfig config, ConfigKey<?> key) {
    if (set) {
      config.warn(
          key, "is checked and not acted on: this version has no connector for engines yet");
    }
  }

  private static Optional<Path> metricsPath(StoreConfig config) {
    try {
      return config.find(ConnectorKeys.METRICS_CONFIG_PATH).map(Path::of);
    } catch (InvalidPathException e) {
      config.reject(ConnectorKeys.METRICS_CONFIG_PATH, "is no path: " + e.getReason());
      return Optional.empty();
    }
  }
}
