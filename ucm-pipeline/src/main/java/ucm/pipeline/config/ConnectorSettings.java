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
 * The top-level values of a configuration: how the engine side uses the pipeline.
 *
 * @param useLayerwise load and save layer by layer
 * @param enableEventSync a dump waits for the event that the engine hands in with the layer
 * @param hitRatio cap of the tokens taken from the cache, as a share of the prompt, in (0, 1]
 * @param persistTokenThreshold requests of fewer tokens skip look-up, load and dump
 * @param loadTokensThreshold load only when more tokens than this are found
 * @param saveDecodeBlocks save blocks of generated tokens as well
 * @param enableRecordTraces one trace record per request
 * @param useLite metadata only
 * @param blockHasher name of the {@link BlockHashing}
 * @param metricsConfigPath says which metrics are exported
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
    ConnectorSettings settings =
        new ConnectorSettings(
            config.get(ConnectorKeys.USE_LAYERWISE),
            eventSync && !nfs,
            ratio.isPresent() ? OptionalDouble.of(ratio.get()) : OptionalDouble.empty(),
            config.get(ConnectorKeys.PERSIST_TOKEN_THRESHOLD),
            config.get(ConnectorKeys.LOAD_TOKENS_THRESHOLD),
            config.get(ConnectorKeys.SAVE_DECODE_BLOCKS),
            config.get(ConnectorKeys.ENABLE_RECORD_TRACES),
            config.get(ConnectorKeys.USE_LITE),
            config.get(ConnectorKeys.BLOCK_HASHER),
            metricsPath(config));
    return settings;
  }

  /** The way of naming blocks; when there is none of this name, that is recorded in {@code config}. */
  Optional<BlockHashing> blockHashing(StoreConfig config, StoreCatalog catalog) {
    Optional<BlockHashing> found;
    try {
      found = catalog.blockHashing(blockHasher);
    } catch (StoreException e) {
      config.reject(ConnectorKeys.BLOCK_HASHER, "is " + blockHasher + ": " + e.getMessage());
      return Optional.empty();
    }
    if (found.isEmpty()) {
      config.reject(
          ConnectorKeys.BLOCK_HASHER,
          "is " + blockHasher + "; found are " + String.join(", ", catalog.blockHashings()));
    }
    return found;
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
