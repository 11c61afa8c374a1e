package ucm.pipeline.config;

import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.BoundedCall;
import ucm.pipeline.catalog.BoundedCall.HangsException;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.catalog.UnknownStageException;
import ucm.pipeline.hash.BlockHashing;

/** One check of a configuration: shape, keys, top level, and what each stage says of its values. */
public final class ConfigCheck {

  private final UcmConfig config;
  private final StoreCatalog catalog;
  private final Map<String, List<ConfigKey<?>>> declared;
  private final List<ConfigProblem> findings;

  /** What stages say, each once, with the stages that say it. */
  private final Map<ConfigProblem, Set<String>> fromStages = new LinkedHashMap<>();

  public ConfigCheck(UcmConfig config, StoreCatalog catalog) {
    this.config = config;
    this.catalog = catalog;
    this.declared = catalog.ownConfigKeys();
    this.findings = new ArrayList<>(config.shapeFindings());
  }

  /**
   * Checks a configuration by itself; builds stages only to ask them, values of an engine may lack.
   *
   * @param metricsFile reads the file that {@code metrics_config_path} names
   */
  ConfigReport report(Consumer<Path> metricsFile) {
    List<String> asked = config.findPipeline(findings).map(PipelineSpec::stages).orElse(List.of());
    List<String> meant = asked.stream().map(this::meant).toList();
    Map<String, Store> made = new HashMap<>();
    for (String stage : new LinkedHashSet<>(meant)) {
      try {
        if (!stage.isEmpty()) {
          Store store = catalog.create(stage);
          made.put(stage, store);
          configure(meant, meant.indexOf(stage), store, /* engineMayLack= */ true);
        }
      } catch (StoreException e) {
        findings.add(stageFault(stage, String.valueOf(e.getMessage())));
      }
    }
    if (meant.isEmpty() || !made.keySet().containsAll(meant)) {
      checkUnaskedValues(made.keySet());
    }
    List<@Nullable Store> stages = new ArrayList<>();
    meant.forEach(stage -> stages.add(made.get(stage)));
    checkOrder(meant, stages);
    config
        .directories()
        .forEach(
            (key, directories) -> {
              if (!declared(made.keySet(), key).isEmpty()) {
                directories.forEach(directory -> checkDirectory(key, directory));
              }
            });
    return finish(asked, metricsFile);
  }

  /** The stage of a name; where there is none, the one that was probably meant, or an empty text. */
  private String meant(String stage) {
    if (catalog.entry(stage).isPresent()) {
      return stage;
    }
    UnknownStageException fault = new UnknownStageException(stage, catalog);
    findings.add(
        pipelineFault(fault.summary())
            .about(stage, "a chain of " + String.join(", ", catalog.names()))
            .near(fault.nearest()));
    return fault.nearest();
  }

  /** Configures the stages of a pipeline that is about to open; everything must be there. */
  public ConfigReport configure(PipelineSpec spec, List<Store> stages) {
    for (int i = 0; i < stages.size(); i++) {
      configure(spec.stages(), i, stages.get(i), /* engineMayLack= */ false);
    }
    checkOrder(spec.stages(), stages);
    return finish(spec.stages(), path -> {});
  }

  private void configure(List<String> names, int index, Store stage, boolean engineMayLack) {
    String name = names.get(index);
    Map<String, Object> suggested = catalog.suggestions(names.subList(index + 1, names.size()));
    StoreConfig view = config.storeConfig().withSuggestions(suggested);
    try {
      declared.put(name, catalog.configKeys(name, stage));
      catalog.run(name, "configure()", () -> stage.configure(view));
    } catch (HangsException e) {
      findings.add(stageFault(name, String.valueOf(e.getMessage())));
      return; // It may be recording problems still.
    } catch (RuntimeException | LinkageError e) {
      findings.add(stageFault(name, "could not be checked: " + BoundedCall.reason(e)));
    }
    for (ConfigProblem problem : view.problems()) {
      boolean engines = KnownKeys.isFromEngine(problem.key());
      if (!(engineMayLack && engines && !config.connector().containsKey(problem.key()))) {
        ConfigProblem finding = withPosition(problem, config.connector());
        fromStages.computeIfAbsent(finding, f -> new LinkedHashSet<>()).add(name);
      }
    }
  }

  private ConfigProblem stageFault(String name, String message) {
    return ConfigProblem.error(config.connectorAt(), "", message).in(List.of(name));
  }

  /** Asks each stage whether the next one can stand there; null is one that could not be made. */
  private void checkOrder(List<String> names, List<? extends @Nullable Store> stages) {
    for (int i = 0; i < stages.size(); i++) {
      Store stage = stages.get(i);
      boolean last = i == stages.size() - 1;
      Store next = last ? null : stages.get(i + 1);
      if (stage == null || (next == null && !last)) {
        continue;
      }
      String name = names.get(i);
      try {
        catalog.run(
            name,
            "refuseNext()",
            () -> stage.refuseNext(next).ifPresent(why -> findings.add(pipelineFault(why))));
      } catch (RuntimeException | LinkageError e) {
        findings.add(stageFault(name, "could not be checked: " + BoundedCall.reason(e)));
      }
    }
  }

  /** Looks at the values of stages that are not known, by what all stages declare. */
  private void checkUnaskedValues(Set<String> asked) {
    for (Setting setting : config.connector().values()) {
      Object raw = setting.raw();
      List<ConfigKey<?>> keys = declared(declared.keySet(), setting.key());
      String why = raw == null ? "" : refusal(keys, raw);
      if (!why.isEmpty() && declared(asked, setting.key()).isEmpty()) {
        findings.add(setting.refused(why, keys.getFirst().allowed()));
      }
    }
  }

  /** Why no declaration takes a value; empty when one does, or there is none. */
  private static String refusal(List<ConfigKey<?>> keys, Object raw) {
    String why = "";
    for (ConfigKey<?> key : keys) {
      try {
        Object _ = key.parse(raw);
        return "";
      } catch (IllegalArgumentException e) {
        why = String.valueOf(e.getMessage());
      }
    }
    return why;
  }

  /** What stages declare under a name or alias. */
  private List<ConfigKey<?>> declared(Set<String> stages, String name) {
    List<ConfigKey<?>> keys = new ArrayList<>();
    for (String stage : stages) {
      keys.addAll(declared.getOrDefault(stage, List.of()));
    }
    keys.removeIf(key -> !KeyCheck.names(key).contains(name));
    return keys;
  }

  /** A directory may be missing, as a stage makes it; something else of its name is in the way. */
  private void checkDirectory(String key, String text) {
    Setting setting = config.connector().get(key);
    String why;
    try {
      why = BoundedCall.run(text, () -> inTheWay(Path.of(text)));
    } catch (HangsException e) {
      why = e.getMessage() + ": a file system whose server does not answer?";
    } catch (InvalidPathException e) {
      why = "found \"%s\", which is no path: %s".formatted(text, e.getReason());
    }
    if (setting != null && !why.isEmpty()) {
      findings.add(setting.refused(why, CommonKeys.STORAGE_BACKENDS.allowed()));
    }
  }

  private static String inTheWay(Path directory) {
    Path path = directory.toAbsolutePath();
    while (path.getParent() != null && !Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
      path = path.getParent();
    }
    return Files.isDirectory(path)
        ? ""
        : "found %s, and %s is no directory: remove what is there, or name another"
            .formatted(directory, path);
  }

  private ConfigReport finish(List<String> stages, Consumer<Path> metricsFile) {
    fromStages.forEach((finding, by) -> findings.add(finding.in(List.copyOf(by))));
    KeyCheck keys = new KeyCheck(declared, catalog::configKeys, stages, config.isNfs(), findings);
    config.topLevel().values().forEach(keys::topLevel);
    config.connector().values().forEach(keys::connector);
    StoreConfig top = config.topLevelConfig();
    ConnectorSettings settings = ConnectorSettings.from(top, config.connectorName());
    Optional<BlockHashing> _ = settings.blockHashing(top, catalog);
    try {
      settings.metricsConfigPath().ifPresent(metricsFile);
    } catch (StoreException e) {
      top.reject(ConnectorSettings.METRICS_CONFIG_PATH, String.valueOf(e.getMessage()));
    }
    top.problems().forEach(problem -> findings.add(withPosition(problem, config.topLevel())));
    return new ConfigReport(findings);
  }

  /** Adds what the problem itself does not carry: the value, what is allowed, a position. */
  private ConfigProblem withPosition(ConfigProblem problem, Map<String, Setting> settings) {
    Optional<ConfigKey<?>> key =
        Stream.concat(
                ConnectorSettings.TOP_LEVEL.stream(),
                declared.values().stream().flatMap(List::stream))
            .filter(known -> known.name().equals(problem.key()))
            .findFirst();
    Setting setting =
        key.isPresent() ? Setting.find(settings, key.get()) : settings.get(problem.key());
    String allowed = key.map(ConfigKey::allowed).orElse("");
    if (setting != null && setting.raw() != null) {
      return problem.about(setting.shown(), allowed);
    }
    ConfigOrigin at = setting == null ? config.connectorAt() : setting.keyAt();
    return problem.at(at).about("", allowed);
  }

  private ConfigProblem pipelineFault(String message) {
    Setting setting = config.connector().get(ConnectorSettings.STORE_PIPELINE.name());
    ConfigOrigin at = config.isNfs() || setting == null ? config.connectorAt() : setting.valueAt();
    String key = config.isNfs() ? ConfigShape.NAME : ConnectorSettings.STORE_PIPELINE.name();
    return ConfigProblem.error(at, key, message);
  }
}
