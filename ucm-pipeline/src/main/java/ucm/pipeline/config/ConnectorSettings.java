package ucm.pipeline.config;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalDouble;
import ucm.api.StoreException;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.hash.BlockHashing;

/**
 * The top-level values of a configuration: how the engine side uses the pipeline. Each is that of the
 * key of its name in {@link ConnectorKeys}; event sync is also off with {@code UcmNfsStore}.
 */
public record ConnectorSettings(
    boolean useLayerwise,
    boolean enableEventSync,
    OptionalDouble hitRatio,
    int persistTokenThreshold,
    int loadTokensThreshold,
    boolean saveDecodeBlocks,
    boolean enableRecordTraces,
    boolean useLite,
    String blockHasher,
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
    return new ConnectorSettings(
        config.get(ConnectorKeys.USE_LAYERWISE),
        eventSync && !nfs,
        ratio.map(OptionalDouble::of).orElse(OptionalDouble.empty()),
        config.get(ConnectorKeys.PERSIST_TOKEN_THRESHOLD),
        config.get(ConnectorKeys.LOAD_TOKENS_THRESHOLD),
        config.get(ConnectorKeys.SAVE_DECODE_BLOCKS),
        config.get(ConnectorKeys.ENABLE_RECORD_TRACES),
        config.get(ConnectorKeys.USE_LITE),
        config.get(ConnectorKeys.BLOCK_HASHER),
        metricsPath(config));
  }

  /** The way of naming blocks; when there is none of this name, that is recorded in {@code config}. */
  Optional<BlockHashing> blockHashing(StoreConfig config, StoreCatalog catalog) {
    String why;
    try {
      Optional<BlockHashing> found = catalog.blockHashing(blockHasher);
      if (found.isPresent()) {
        return found;
      }
      why = "; found are " + String.join(", ", catalog.blockHashings());
    } catch (StoreException e) {
      why = ": " + e.getMessage();
    }
    config.reject(ConnectorKeys.BLOCK_HASHER, "is " + blockHasher + why);
    return Optional.empty();
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
