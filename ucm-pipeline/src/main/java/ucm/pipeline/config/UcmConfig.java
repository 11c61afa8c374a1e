package ucm.pipeline.config;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.hash.BlockHashing;
import ucm.pipeline.yaml.UcmYaml;
import ucm.pipeline.yaml.YamlSyntaxException;
import ucm.pipeline.yaml.YamlText;

/**
 * A configuration as it was written: the values, each with its position, not yet judged. Immutable.
 *
 * <p>The file is YAML in one of the two shapes that the original UCM reads. What an engine knows (the
 * layout of a block, the device) is added by {@link #with}. {@link #check} says what is wrong; {@link
 * Pipeline#open(UcmConfig, StoreCatalog)} refuses a configuration with errors.
 */
public final class UcmConfig {

  private final String source;
  private final String connectorName;
  private final Optional<ConfigOrigin> connectorAt;
  private final Map<String, Setting> topLevel;
  private final Map<String, Setting> connector;
  private final List<ConfigFinding> shapeFindings;

  private UcmConfig(
      String source,
      String connectorName,
      Optional<ConfigOrigin> connectorAt,
      Map<String, Setting> topLevel,
      Map<String, Setting> connector,
      List<ConfigFinding> shapeFindings) {
    this.source = source;
    this.connectorName = connectorName;
    this.connectorAt = connectorAt;
    this.topLevel = topLevel;
    this.connector = connector;
    this.shapeFindings = shapeFindings;
  }

  /**
   * Reads a file.
   *
   * @throws ConfigException when it cannot be read or is no YAML map; the message says where and why
   */
  public static UcmConfig read(Path file) {
    try {
      return parse(file.toString(), YamlText.read(file));
    } catch (YamlSyntaxException e) {
      throw new ConfigException(ConfigFinding.error(e.at(), "", e.problem()));
    }
  }

  /**
   * Reads a text.
   *
   * @param source what precedes line and column in messages, usually a file name
   * @throws ConfigException when the text is no YAML map; the message says where and why
   */
  public static UcmConfig parse(String source, String yaml) {
    try {
      ConfigShape shape = new ConfigShape(UcmYaml.read(source, yaml), source);
      return new UcmConfig(
          source,
          shape.connectorName(),
          shape.hasConnector() ? Optional.of(shape.connectorAt()) : Optional.empty(),
          shape.topLevel(),
          shape.connector(),
          shape.findings());
    } catch (YamlSyntaxException e) {
      throw new ConfigException(ConfigFinding.error(e.at(), "", e.problem()));
    }
  }

  /**
   * A configuration made by a program, without a file.
   *
   * @param pipeline for example {@code Cache|Posix}
   * @param connectorValues what would stand in {@code ucm_connector_config}; nested keys are dotted
   */
  public static UcmConfig of(String pipeline, Map<String, ?> connectorValues) {
    String engine = "engine";
    return new UcmConfig(
            engine,
            ConfigShape.PIPELINE_STORE,
            Optional.of(ConfigOrigin.of(engine)),
            Map.of(),
            Map.of(),
            List.of())
        .with(Map.of(ConnectorKeys.STORE_PIPELINE.name(), pipeline), engine)
        .with(connectorValues, engine);
  }

  /**
   * This configuration with more values for the connector; they replace those of the file.
   *
   * @param connectorValues texts, integers, numbers, flags or lists of them; nested keys are dotted
   * @param origin what set it, for example {@code engine} or {@code command line}
   */
  public UcmConfig with(Map<String, ?> connectorValues, String origin) {
    Map<String, Setting> merged = merge(connector, connectorValues, origin);
    return new UcmConfig(source, connectorName, connectorAt, topLevel, merged, shapeFindings);
  }

  /** This configuration with more values for the top level; see {@link #with}. */
  public UcmConfig withTopLevel(Map<String, ?> values, String origin) {
    Map<String, Setting> merged = merge(topLevel, values, origin);
    return new UcmConfig(source, connectorName, connectorAt, merged, connector, shapeFindings);
  }

  private static Map<String, Setting> merge(
      Map<String, Setting> old, Map<String, ?> values, String origin) {
    Map<String, Setting> merged = new LinkedHashMap<>(old);
    values.forEach((key, raw) -> merged.put(key, Setting.of(key, raw, ConfigOrigin.of(origin))));
    return merged;
  }

  /** The file it came from, or what made it. */
  public String source() {
    return source;
  }

  /** {@code UcmPipelineStore} or {@code UcmNfsStore}. */
  public String connectorName() {
    return connectorName;
  }

  /**
   * The stages it asks for.
   *
   * @throws ConfigException when they are not set, or are no pipeline string
   */
  public PipelineSpec pipeline() {
    List<ConfigFinding> findings = new ArrayList<>(shapeFindings);
    return findPipeline(findings)
        .orElseThrow(() -> new ConfigException(new ConfigReport(findings)));
  }

  /**
   * The stages that an engine opens: those of {@link #pipeline}, and in lite mode only {@code Fake}.
   *
   * @throws ConfigException when they are not set, or are no pipeline string; or a value of the top
   *     level is bad
   */
  public PipelineSpec openedPipeline() {
    return settings().useLite() ? new PipelineSpec(List.of("Fake")) : pipeline();
  }

  /**
   * The values of the top level.
   *
   * @throws ConfigException when one of them is bad
   */
  public ConnectorSettings settings() {
    StoreConfig config = topLevelConfig();
    ConnectorSettings settings = ConnectorSettings.from(config, connectorName);
    requireNoErrors(config);
    return settings;
  }

  /**
   * The way of naming blocks that the top level asks for.
   *
   * @throws ConfigException when there is none of that name, or a value of the top level is bad
   */
  public BlockHashing blockHashing(StoreCatalog catalog) {
    StoreConfig config = topLevelConfig();
    Optional<BlockHashing> found =
        ConnectorSettings.from(config, connectorName).blockHashing(config, catalog);
    requireNoErrors(config);
    return found.orElseThrow();
  }

  private static void requireNoErrors(StoreConfig config) {
    if (config.hasErrors()) {
      throw new ConfigException(
          new ConfigReport(
              config.problems().stream().map(p -> ConfigFinding.of(p, List.of())).toList()));
    }
  }

  /** The connector's values as a store reads them; a fresh view, for one store. */
  public StoreConfig storeConfig() {
    return view(connector);
  }

  /**
   * Checks everything: the shape, every key, every value as the stages see it. Values that only an
   * engine can give ({@code block_size} and the like) may be missing. Opens nothing.
   */
  public ConfigReport check(StoreCatalog catalog) {
    return check(catalog, path -> {});
  }

  /**
   * Checks everything, with the file that {@code metrics_config_path} names.
   *
   * @param metricsFile reads that file and throws a {@link ucm.api.StoreException} for what is wrong
   *     with it; not called when none is named
   */
  public ConfigReport check(StoreCatalog catalog, Consumer<Path> metricsFile) {
    return new ConfigCheck(this, catalog).report(metricsFile);
  }

  /** Every declared key with its value and where that came from. */
  public EffectiveConfig effective(StoreCatalog catalog) {
    return EffectiveConfig.of(this, catalog);
  }

  public Optional<PipelineSpec> findPipeline(List<ConfigFinding> findings) {
    if (isNfs()) {
      return Optional.of(new PipelineSpec(List.of("Nfs")));
    }
    String key = ConnectorKeys.STORE_PIPELINE.name();
    Setting setting = connector.get(key);
    if (setting == null && connectorAt.isEmpty()) {
      return Optional.empty(); // The shape's findings say already what is missing.
    }
    if (setting == null || setting.raw() == null) {
      findings.add(
          ConfigFinding.error(
              setting == null ? connectorAt() : setting.keyAt(),
              key,
              "is required and not set; for example Cache|Posix"));
      return Optional.empty();
    }
    try {
      return Optional.of(PipelineSpec.parse(ConnectorKeys.STORE_PIPELINE.parse(setting.raw())));
    } catch (IllegalArgumentException e) {
      findings.add(
          ConfigFinding.error(setting.valueAt(), key, String.valueOf(e.getMessage()))
              .about(setting.shown(), "names of stages joined by '|'"));
      return Optional.empty();
    }
  }

  boolean isNfs() {
    return connectorName.equals(ConfigShape.NFS_STORE);
  }

  /** Whether a key of the top level is given, and not left to its default. */
  public boolean isSet(ConfigKey<?> key) {
    return topLevel.containsKey(key.name());
  }

  StoreConfig topLevelConfig() {
    return view(topLevel);
  }

  Map<String, Setting> topLevel() {
    return topLevel;
  }

  public Map<String, Setting> connector() {
    return connector;
  }

  public List<ConfigFinding> shapeFindings() {
    return shapeFindings;
  }

  /** Where a value that is missing in the connector's settings should have been. */
  ConfigOrigin connectorAt() {
    return connectorAt.orElseGet(() -> ConfigOrigin.of(source));
  }

  private static StoreConfig view(Map<String, Setting> settings) {
    Map<String, StoreConfig.Value> values = new LinkedHashMap<>();
    settings.forEach(
        (key, setting) -> {
          if (setting.raw() != null) {
            values.put(key, new StoreConfig.Value(setting.raw(), setting.valueAt()));
          }
        });
    return new StoreConfig(values);
  }

  @Override
  public String toString() {
    return "configuration of " + connectorName + " from " + source;
  }
}
