package ucm.pipeline.config;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeSet;
import ucm.api.StoreException;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.hash.BlockHashing;

/**
 * The top-level values of a configuration: how the engine side uses the pipeline, with the keys that belong
 * to no store. Each value is that of the key of its name; event sync is also off with {@code UcmNfsStore}.
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
    ModelFingerprint modelFingerprint,
    Optional<Path> metricsConfigPath,
    Optional<String> logLevel) {

  public static final ConfigKey<String> STORE_PIPELINE =
      ConfigKey.text("store_pipeline")
          .require()
          .doc(
              "Names of the stages joined by '|', the one nearest the engine first, for example"
                  + " Cache|Posix.");

  public static final ConfigKey<Boolean> USE_LAYERWISE =
      ConfigKey.flag("use_layerwise")
          .defaultTo(true)
          .doc("Load and save layer by layer, while the model computes.");

  static final ConfigKey<Boolean> ENABLE_EVENT_SYNC =
      ConfigKey.flag("enable_event_sync")
          .defaultTo(true)
          .doc(
              "The engine may hand in an event with each layer, which the dump then waits for"
                  + " instead of the whole device. Always false with UcmNfsStore.");

  static final ConfigKey<Double> HIT_RATIO =
      ConfigKey.number("hit_ratio")
          .live()
          .above(0)
          .atMost(1)
          .doc("When set, at most hit_ratio x prompt tokens are taken from the cache.");

  static final ConfigKey<Integer> PERSIST_TOKEN_THRESHOLD =
      ConfigKey.integer("persist_token_threshold")
          .live()
          .atLeast(0)
          .defaultTo(0)
          .unit("tokens")
          .doc("Requests shorter than this skip look-up, load and dump.");

  static final ConfigKey<Integer> LOAD_TOKENS_THRESHOLD =
      ConfigKey.integer("load_tokens_threshold")
          .live()
          .atLeast(0)
          .defaultTo(0)
          .unit("tokens")
          .doc("Load only when more tokens than this are found outside the device.");

  static final ConfigKey<Boolean> SAVE_DECODE_BLOCKS =
      ConfigKey.flag("save_decode_blocks")
          .defaultTo(false)
          .doc("Save blocks of generated tokens as well, for the next turn of a chat.");

  static final ConfigKey<Boolean> ENABLE_RECORD_TRACES =
      ConfigKey.flag("enable_record_traces")
          .defaultTo(false)
          .doc("Write one trace record per request: its lengths and block ids, never its text.");

  static final ConfigKey<Boolean> USE_LITE =
      ConfigKey.flag("use_lite")
          .defaultTo(false)
          .doc("Keep metadata only and collect hit statistics; no KV data is moved.");

  static final ConfigKey<String> BLOCK_HASHER =
      ConfigKey.text("block_hasher")
          .defaultTo(BlockHashing.ORIGINAL)
          .doc(
              "How blocks are named; md5-pickle is the original's way. Others are services found"
                  + " with the engine and in plugins; all who share blocks must use the same.");

  static final ConfigKey<String> MODEL_FINGERPRINT =
      ConfigKey.choice(
              "model_fingerprint",
              ModelFingerprint.WEIGHTS.word(),
              ModelFingerprint.CONFIG.word(),
              ModelFingerprint.PATH.word())
          .defaultTo(ModelFingerprint.WEIGHTS.word())
          .doc(
              "By what a model is told from others in the names of blocks. weights: by what is in"
                  + " its files and by its effective configuration, wherever it lies. config: by"
                  + " its path and its configuration. path: by its path alone, as the original"
                  + " does, whose directories are found only so; who replaces weights under a"
                  + " path, or overrides the configuration, then gets KV of the other model unless"
                  + " the blocks are removed. All who share blocks must use the same.");

  public static final ConfigKey<String> METRICS_CONFIG_PATH =
      ConfigKey.text("metrics_config_path")
          .live()
          .doc(
              "A YAML file that says which metrics Prometheus is shown, under which prefix, with"
                  + " which buckets, and at which port. When it names no port, only --metrics-port"
                  + " of a command, or the engine, opens one.");

  public static final ConfigKey<String> LOG_LEVEL =
      ConfigKey.choice("serve_log_level", "debug", "info", "warning", "error")
          .live()
          .doc(
              "What ucm serve logs, from when an engine with this file connects; of several files,"
                  + " the last one that sets it counts. Unset, UC_LOGGER_LEVEL decides. Engines in"
                  + " Java have a log of their own.");

  /** The keys that stand beside {@code ucm_connectors}, in the order of the reference page. */
  public static final List<ConfigKey<?>> TOP_LEVEL =
      List.of(
          USE_LAYERWISE,
          ENABLE_EVENT_SYNC,
          HIT_RATIO,
          PERSIST_TOKEN_THRESHOLD,
          LOAD_TOKENS_THRESHOLD,
          SAVE_DECODE_BLOCKS,
          ENABLE_RECORD_TRACES,
          USE_LITE,
          BLOCK_HASHER,
          MODEL_FINGERPRINT,
          METRICS_CONFIG_PATH,
          LOG_LEVEL);

  /** Reads and checks; faults are recorded in {@code config}. */
  static ConnectorSettings from(StoreConfig config, String connectorName) {
    boolean nfs = connectorName.equals(ConfigShape.NFS_STORE);
    boolean eventSync = config.get(ENABLE_EVENT_SYNC);
    if (nfs && eventSync && config.isSet(ENABLE_EVENT_SYNC)) {
      config.reject(
          ENABLE_EVENT_SYNC,
          "is true; when using UcmNfsStore, enable_event_sync must be set to false or left out");
    }
    Optional<Double> ratio = config.find(HIT_RATIO);
    return new ConnectorSettings(
        config.get(USE_LAYERWISE),
        eventSync && !nfs,
        ratio.map(OptionalDouble::of).orElse(OptionalDouble.empty()),
        config.get(PERSIST_TOKEN_THRESHOLD),
        config.get(LOAD_TOKENS_THRESHOLD),
        config.get(SAVE_DECODE_BLOCKS),
        config.get(ENABLE_RECORD_TRACES),
        config.get(USE_LITE),
        config.get(BLOCK_HASHER),
        ModelFingerprint.valueOf(config.get(MODEL_FINGERPRINT).toUpperCase(Locale.ROOT)),
        metricsPath(config),
        config.find(LOG_LEVEL));
  }

  /** Those keys that are set and concern a whole process, with all engines in it. */
  public Set<String> ofProcess() {
    Set<String> keys = new TreeSet<>();
    metricsConfigPath.ifPresent(_ -> keys.add(METRICS_CONFIG_PATH.name()));
    logLevel.ifPresent(_ -> keys.add(LOG_LEVEL.name()));
    return keys;
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
    config.reject(BLOCK_HASHER, "is " + blockHasher + why);
    return Optional.empty();
  }

  private static Optional<Path> metricsPath(StoreConfig config) {
    try {
      return config.find(METRICS_CONFIG_PATH).map(Path::of);
    } catch (InvalidPathException e) {
      config.reject(METRICS_CONFIG_PATH, "is no path: " + e.getReason());
      return Optional.empty();
    }
  }
}
