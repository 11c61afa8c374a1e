package ucm.pipeline.config;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.hash.BlockHashing;

/**
 * A configuration as it was written: the values, each with its position, not yet judged. Made by {@link
 * #read}, {@link #parse} and {@link #of}. Immutable.
 *
 * <p>The file is YAML in one of the two shapes that the original UCM reads. What an engine knows (the
 * layout of a block, the device) is added by {@link #with}. {@link #check} says what is wrong; {@code
 * Pipeline.open} refuses a configuration with errors.
 *
 * @param source the file it came from, or what made it
 * @param connectorName {@code UcmPipelineStore} or {@code UcmNfsStore}
 * @param connectorStart where the connector's settings begin; empty when there are none
 * @param topLevel the settings beside the connector
 * @param connector the settings of the connector
 * @param shapeFindings what does not fit into one of the shapes
 */
public record UcmConfig(
    String source,
    String connectorName,
    Optional<ConfigOrigin> connectorStart,
    Map<String, Setting> topLevel,
    Map<String, Setting> connector,
    List<ConfigProblem> shapeFindings) {

  public UcmConfig {
    topLevel = Collections.unmodifiableMap(new LinkedHashMap<>(topLevel));
    connector = Collections.unmodifiableMap(new LinkedHashMap<>(connector));
    shapeFindings = List.copyOf(shapeFindings);
  }

  /**
   * Reads a file. Relative paths in it begin at its folder.
   *
   * @throws ConfigException when it cannot be read or is no YAML map; the message says where and why
   */
  public static UcmConfig read(Path file) {
    UcmConfig read = parse(file.toString(), YamlText.read(file));
    return RelativePaths.resolved(read, file.toAbsolutePath().getParent());
  }

  /**
   * Reads a text of another process, whose own folder means nothing here: relative paths begin at the folder
   * of the file that it comes from.
   *
   * @param source what precedes line and column in messages: the absolute path of a file, or a name
   * @throws ConfigException when the text is no YAML map, or has relative paths and comes from no file
   */
  public static UcmConfig received(String source, String yaml) {
    UcmConfig read = parse(source, yaml);
    return source.startsWith("/")
        ? RelativePaths.resolved(read, Path.of(source).getParent())
        : RelativePaths.refused(read);
  }

  /**
   * Reads a text. Relative paths in it begin at the working directory of this process.
   *
   * @param source what precedes line and column in messages, usually a file name
   * @throws ConfigException when the text is no YAML map; the message says where and why
   */
  public static UcmConfig parse(String source, String yaml) {
    return ConfigShape.read(UcmYaml.read(source, yaml), source);
  }

  /**
   * A configuration made by a program, without a file.
   *
   * @param pipeline for example {@code Cache|Posix}
   * @param connectorValues what would stand in {@code ucm_connector_config}; nested keys are dotted
   */
  public static UcmConfig of(String pipeline, Map<String, ?> connectorValues) {
    Optional<ConfigOrigin> engine = Optional.of(ConfigOrigin.of("engine"));
    return new UcmConfig(
            "engine", ConfigShape.PIPELINE_STORE, engine, Map.of(), Map.of(), List.of())
        .with(Map.of(ConnectorSettings.STORE_PIPELINE.name(), pipeline), "engine")
        .with(connectorValues, "engine");
  }

  /**
   * This configuration with more values for the connector; they replace those of the file.
   *
   * @param connectorValues texts, integers, numbers, flags or lists of them; nested keys are dotted
   * @param origin what set it, for example {@code engine} or {@code command line}
   */
  public UcmConfig with(Map<String, ?> connectorValues, String origin) {
    return withSettings(topLevel, merge(connector, connectorValues, origin));
  }

  /** This configuration with more values for the top level; see {@link #with}. */
  public UcmConfig withTopLevel(Map<String, ?> values, String origin) {
    return withSettings(merge(topLevel, values, origin), connector);
  }

  /** This configuration with the values that another one has of some keys, set there or not. */
  UcmConfig withValuesOf(UcmConfig other, Collection<ConfigKey<?>> keys) {
    return withSettings(
        replaced(topLevel, other.topLevel, keys), replaced(connector, other.connector, keys));
  }

  private UcmConfig withSettings(Map<String, Setting> top, Map<String, Setting> ofConnector) {
    return new UcmConfig(source, connectorName, connectorStart, top, ofConnector, shapeFindings);
  }

  /** This configuration, each of its settings changed. */
  UcmConfig changed(UnaryOperator<Setting> change) {
    Map<String, Setting> top = new LinkedHashMap<>(topLevel);
    Map<String, Setting> own = new LinkedHashMap<>(connector);
    top.replaceAll((key, setting) -> change.apply(setting));
    own.replaceAll((key, setting) -> change.apply(setting));
    return withSettings(top, own);
  }

  private static Map<String, Setting> replaced(
      Map<String, Setting> old, Map<String, Setting> other, Collection<ConfigKey<?>> keys) {
    Map<String, Setting> all = new LinkedHashMap<>(old);
    for (ConfigKey<?> key : keys) {
      List<String> names = KeyCheck.names(key);
      all.keySet().removeAll(names);
      names.stream().filter(other::containsKey).forEach(name -> all.put(name, other.get(name)));
    }
    return all;
  }

  private static Map<String, Setting> merge(
      Map<String, Setting> old, Map<String, ?> values, String origin) {
    Map<String, Setting> merged = new LinkedHashMap<>(old);
    values.forEach((key, raw) -> merged.put(key, Setting.of(key, raw, ConfigOrigin.of(origin))));
    return merged;
  }

  /**
   * The stages it asks for.
   *
   * @throws ConfigException when they are not set, or are no pipeline string
   */
  public PipelineSpec pipeline() {
    List<ConfigProblem> findings = new ArrayList<>(shapeFindings);
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
    new ConfigReport(config.problems()).requireNoErrors();
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
    new ConfigReport(config.problems()).requireNoErrors();
    return found.orElseThrow();
  }

  /** The connector's values as a store reads them; a fresh view, for one store. */
  public StoreConfig storeConfig() {
    return Setting.view(connector);
  }

  /**
   * The directories of blocks, by the key that names them: {@code storage_backends}, and where one stage has
   * others, a key that ends so, as {@code posix_storage_backends} does.
   */
  public Map<String, List<String>> directories() {
    Map<String, List<String>> named = new LinkedHashMap<>();
    StoreConfig values = storeConfig();
    for (String key : connector.keySet()) {
      if (key.endsWith(CommonKeys.STORAGE_BACKENDS.name())) {
        values.find(ConfigKey.paths(key)).ifPresent(paths -> named.put(key, paths));
      }
    }
    return named;
  }

  /**
   * This configuration with other directories of blocks.
   *
   * @param replacement says which takes the place of one
   * @param origin what sets them, for example {@code command line}
   */
  public UcmConfig withDirectories(UnaryOperator<String> replacement, String origin) {
    Map<String, List<String>> replaced = new LinkedHashMap<>();
    directories()
        .forEach((key, paths) -> replaced.put(key, paths.stream().map(replacement).toList()));
    return with(replaced, origin);
  }

  /** The values of the top level; a fresh view. */
  StoreConfig topLevelConfig() {
    return Setting.view(topLevel);
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

  public EffectiveConfig effective(StoreCatalog catalog) {
    return EffectiveConfig.of(this, catalog);
  }

  /** The stages it asks for; when they cannot be told, the reason goes to the findings. */
  public Optional<PipelineSpec> findPipeline(List<ConfigProblem> findings) {
    if (isNfs()) {
      return Optional.of(new PipelineSpec(List.of("Nfs")));
    }
    String key = ConnectorSettings.STORE_PIPELINE.name();
    Setting setting = connector.get(key);
    if (setting == null && connectorStart.isEmpty()) {
      return Optional.empty(); // The shape's findings say already what is missing.
    }
    if (setting == null || setting.raw() == null) {
      findings.add(
          ConfigProblem.error(
              setting == null ? connectorAt() : setting.keyAt(),
              key,
              "is required and not set; for example Cache|Posix"));
      return Optional.empty();
    }
    try {
      return Optional.of(PipelineSpec.parse(ConnectorSettings.STORE_PIPELINE.parse(setting.raw())));
    } catch (IllegalArgumentException e) {
      findings.add(
          setting.refused(String.valueOf(e.getMessage()), "names of stages joined by '|'"));
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

  /** Where a value that is missing in the connector's settings should have been. */
  ConfigOrigin connectorAt() {
    return connectorStart.orElseGet(() -> ConfigOrigin.of(source));
  }

  @Override
  public String toString() {
    return "configuration of " + connectorName + " from " + source;
  }
}
