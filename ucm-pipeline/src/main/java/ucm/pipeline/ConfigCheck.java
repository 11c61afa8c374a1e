package ucm.pipeline;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import ucm.api.ConfigKey;
import ucm.api.ConfigOrigin;
import ucm.api.ConfigProblem;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.StoreException;

/** One check of a configuration: shape, keys, top level, and what each stage says of its values. */
final class ConfigCheck {

  private final UcmConfig config;
  private final StoreCatalog catalog;
  private final Map<String, List<ConfigKey<?>>> declared;
  private final List<ConfigFinding> findings;

  /** What stages say, each once, with the stages that say it. */
  private final Map<ConfigFinding, List<String>> fromStages = new LinkedHashMap<>();

  ConfigCheck(UcmConfig config, StoreCatalog catalog) {
    this.config = config;
    this.catalog = catalog;
    this.declared = catalog.configKeys();
    this.findings = new ArrayList<>(config.shapeFindings());
  }

  /** Checks a configuration by itself; builds stages only to ask them, values of an engine may lack. */
  ConfigReport report() {
    Optional<PipelineSpec> spec = config.findPipeline(findings);
    List<String> asked = spec.map(PipelineSpec::stages).orElse(List.of());
    for (String stage : asked.stream().distinct().toList()) {
      try {
        configure(stage, catalog.create(stage), true);
      } catch (UnknownStageException e) {
        findings.add(unknown(e));
      } catch (StoreException e) {
        findings.add(
            ConfigFinding.error(config.connectorAt(), "", String.valueOf(e.getMessage()))
                .in(List.of(stage)));
      }
    }
    return finish(spec);
  }

  /** Configures the stages of a pipeline that is about to open; everything must be there. */
  ConfigReport configure(PipelineSpec spec, List<Store> stages) {
    for (int i = 0; i < stages.size(); i++) {
      configure(spec.stages().get(i), stages.get(i), false);
    }
    return finish(Optional.of(spec));
  }

  private void configure(String name, Store stage, boolean engineMayLack) {
    StoreConfig view = config.storeConfig();
    try {
      stage.configure(view);
    } catch (RuntimeException | LinkageError e) {
      findings.add(
          ConfigFinding.error(config.connectorAt(), "", "could not be checked: " + e)
              .in(List.of(name)));
    }
    for (ConfigProblem problem : view.problems()) {
      boolean engines = KnownKeys.isFromEngine(problem.key());
      if (!(engineMayLack && engines && !config.connector().containsKey(problem.key()))) {
        ConfigFinding finding = place(problem, config.connector());
        fromStages.computeIfAbsent(finding, f -> new ArrayList<>()).add(name);
      }
    }
  }

  private ConfigReport finish(Optional<PipelineSpec> spec) {
    fromStages.forEach(
        (finding, stages) -> findings.add(finding.in(stages.stream().distinct().toList())));
    KeyCheck keys = new KeyCheck(declared, spec, config.isNfs());
    config.topLevel().values().forEach(s -> keys.topLevel(s).ifPresent(findings::add));
    config.connector().values().forEach(s -> keys.connector(s).ifPresent(findings::add));
    StoreConfig top = config.topLevelConfig();
    ConnectorSettings settings = ConnectorSettings.from(top, config.connectorName());
    Optional<BlockHashing> _ = settings.blockHashing(top, catalog);
    for (ConfigProblem problem : top.problems()) {
      findings.add(place(problem, config.topLevel()));
    }
    return new ConfigReport(findings);
  }

  /** Adds what the problem itself does not carry: the value, what is allowed, a place. */
  private ConfigFinding place(ConfigProblem problem, Map<String, Setting> settings) {
    ConfigFinding finding = ConfigFinding.of(problem, List.of());
    Optional<ConfigKey<?>> key = declaration(problem.key());
    Setting setting = settings.get(problem.key());
    for (String alias : key.map(ConfigKey::aliases).orElse(List.of())) {
      setting = setting == null ? settings.get(alias) : setting;
    }
    String allowed = key.map(ConfigKey::allowed).orElse("");
    if (setting == null || setting.raw() == null) {
      ConfigOrigin at = setting == null ? config.connectorAt() : setting.keyAt();
      return finding.at(at).about("", allowed);
    }
    return finding.about(setting.shown(), allowed);
  }

  private Optional<ConfigKey<?>> declaration(String name) {
    Stream<ConfigKey<?>> stages = declared.values().stream().flatMap(List::stream);
    return Stream.concat(ConnectorKeys.topLevel().stream(), stages)
        .filter(key -> key.name().equals(name))
        .findFirst();
  }

  private ConfigFinding unknown(UnknownStageException fault) {
    Setting setting = config.connector().get(ConnectorKeys.STORE_PIPELINE.name());
    ConfigOrigin at = config.isNfs() || setting == null ? config.connectorAt() : setting.valueAt();
    String key = config.isNfs() ? ConfigShape.NAME : ConnectorKeys.STORE_PIPELINE.name();
    return ConfigFinding.error(at, key, fault.summary())
        .about(fault.stage(), "a chain of " + String.join(", ", catalog.names()))
        .near(fault.nearest());
  }
}
