package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.pipeline.catalog.NearestName;

/**
 * Says of every key that was set which part knows it: the pipeline, one of its stages, a stage
 * that is not in the pipeline, or the original UCM. Values are not its business.
 */
final class KeyCheck {

  private static final String PIPELINE_KEY = ConnectorSettings.STORE_PIPELINE.name();

  /** Of each name or alias that stages declare, the stages. */
  private final Map<String, Set<String>> owners = new TreeMap<>();

  private final Set<String> found = new HashSet<>();
  private final Supplier<Map<String, List<ConfigKey<?>>>> unasked;
  private final List<String> pipeline;
  private final boolean nfs;
  private final List<ConfigProblem> findings;
  private boolean allAsked;

  /** Declared by a stage of the pipeline, by name and alias. */
  private final Map<String, ConfigKey<?>> inPipeline = new TreeMap<>();

  private final Map<String, ConfigKey<?>> topLevel = new LinkedHashMap<>();
  private final Map<String, Setting> firstUse = new HashMap<>();
  private final Set<String> ignoredRoots = new HashSet<>();

  /**
   * Prepares a check.
   *
   * @param unasked gives the keys of all stores; asked only where a key is not known otherwise
   * @param pipeline the stages in use; when there are none, or one of them was not found, all stages
   *     count as in use
   */
  KeyCheck(
      Map<String, List<ConfigKey<?>>> declared,
      Supplier<Map<String, List<ConfigKey<?>>>> unasked,
      List<String> pipeline,
      boolean nfs,
      List<ConfigProblem> findings) {
    this.unasked = unasked;
    this.pipeline = pipeline;
    this.nfs = nfs;
    this.findings = findings;
    boolean allFound = !pipeline.isEmpty() && declared.keySet().containsAll(pipeline);
    declared.forEach(this::add);
    declared.forEach(
        (stage, keys) -> {
          if (!allFound || pipeline.contains(stage)) {
            keys.forEach(key -> names(key).forEach(name -> inPipeline.put(name, key)));
          }
        });
    ConnectorSettings.TOP_LEVEL.forEach(key -> topLevel.put(key.name(), key));
  }

  private void add(String stage, List<ConfigKey<?>> keys) {
    if (found.add(stage)) {
      keys.stream()
          .flatMap(key -> names(key).stream())
          .forEach(name -> owners.computeIfAbsent(name, n -> new TreeSet<>()).add(stage));
    }
  }

  /** Judges a key of {@code ucm_connector_config}. */
  void connector(Setting setting) {
    String key = setting.key();
    ConfigKey<?> known = inPipeline.get(key);
    if (key.equals(PIPELINE_KEY)) {
      if (nfs) {
        ignored(setting, "UcmNfsStore is the pipeline Nfs");
      }
    } else if (known != null && isOldNameOfEngineKey(key, known)) {
      ignored(setting, "it is %s here, which the engine says itself".formatted(known.name()));
    } else if (known != null) {
      Setting earlier = firstUse.putIfAbsent(known.name(), setting);
      if (earlier != null) {
        error(setting, "means the same as %s, which is set too; keep one".formatted(earlier.key()));
      } else {
        usable(setting, known);
      }
    } else if (!KnownKeys.isFromEngine(key) && !isOfAMissingStage(key)) {
      List<String> of = owners(key);
      if (!of.isEmpty()) {
        ignored(setting, notInPipeline(of));
      } else if (topLevel.containsKey(key)) {
        error(setting, "belongs to the top level, beside ucm_connectors; move it there");
      } else {
        strange(setting, inPipeline, connectorNames());
      }
    }
  }

  /** Old launch lines say what the engine says itself, which comes first. */
  private static boolean isOldNameOfEngineKey(String key, ConfigKey<?> known) {
    return KnownKeys.isFromEngine(known.name()) && !key.equals(known.name());
  }

  void topLevel(Setting setting) {
    String key = setting.key();
    ConfigKey<?> known = topLevel.get(key);
    if (known != null) {
      usable(setting, known);
    } else if (key.equals(PIPELINE_KEY) || inPipeline.containsKey(key) || !owners(key).isEmpty()) {
      error(setting, "belongs to " + ConfigShape.CONFIG + "; move it there");
    } else {
      Set<String> names = new LinkedHashSet<>();
      names.addAll(List.of(ConfigShape.CONNECTORS, ConfigShape.NAME, ConfigShape.CONFIG));
      names.addAll(topLevel.keySet());
      strange(setting, topLevel, names);
    }
  }

  private void usable(Setting setting, ConfigKey<?> known) {
    if (!setting.fault().isEmpty()) {
      String message = setting.fault() + "; allowed is " + known.allowed();
      findings.add(setting.refused(message, known.allowed()));
    } else if (setting.isEmpty()) {
      findings.add(
          ConfigProblem.warning(
              setting.keyAt(), setting.key(), "has no value and counts as not set"));
    }
  }

  /** Neither the pipeline nor a stage nor the top level knows this key. */
  private void strange(Setting setting, Map<String, ConfigKey<?>> own, Set<String> names) {
    String key = setting.key();
    String root = key.split("\\.", 2)[0];
    String why = KnownKeys.whyIgnored(root);
    List<String> children = names.stream().filter(n -> n.startsWith(key + ".")).sorted().toList();
    ConfigKey<?> parent = parent(key, own);
    if (why != null) {
      if (ignoredRoots.add(root)) {
        findings.add(
            ConfigProblem.warning(setting.keyAt(), root, "is ignored: " + why)
                .about(setting.shown(), ""));
      }
    } else if (!children.isEmpty()) {
      error(setting, "is a map with the keys " + String.join(", ", children));
    } else if (parent != null) {
      error(setting, parent.name() + " is no map; allowed is " + parent.allowed());
    } else {
      String nearest = NearestName.among(names, key);
      String hint = nearest.isEmpty() ? "" : "; did you mean " + nearest + "?";
      findings.add(
          ConfigProblem.error(setting.keyAt(), key, "is no known key" + hint)
              .about(setting.shown(), "")
              .near(nearest));
    }
  }

  private static @Nullable ConfigKey<?> parent(String key, Map<String, ConfigKey<?>> own) {
    int dot = key.lastIndexOf('.');
    if (dot <= 0) {
      return null;
    }
    String parent = key.substring(0, dot);
    ConfigKey<?> known = own.get(parent);
    return known != null ? known : parent(parent, own);
  }

  /** Whether a stage of the pipeline that was not found has this key in the original. */
  private boolean isOfAMissingStage(String key) {
    return KnownKeys.stagesOf(key).stream()
        .anyMatch(stage -> pipeline.contains(stage) && !found.contains(stage));
  }

  /** The stages, found or not, that have this key and are not in the pipeline. */
  private List<String> owners(String key) {
    List<String> of = ownersSoFar(key);
    if (of.isEmpty()
        && !allAsked
        && !KnownKeys.isFromEngine(key)
        && !topLevel.containsKey(key)
        && KnownKeys.whyIgnored(key.split("\\.", 2)[0]) == null) {
      allAsked = true;
      unasked.get().forEach(this::add);
      of = ownersSoFar(key);
    }
    return of;
  }

  private List<String> ownersSoFar(String key) {
    List<String> of = new ArrayList<>(owners.getOrDefault(key, Set.of()));
    of.removeAll(pipeline);
    if (of.isEmpty()) {
      of.addAll(KnownKeys.stagesOf(key));
      of.removeAll(pipeline);
    }
    return of;
  }

  private String notInPipeline(List<String> of) {
    boolean one = of.size() == 1;
    String belongs =
        "it belongs to %s %s".formatted(one ? "stage" : "stages", String.join(" and ", of));
    if (pipeline.isEmpty()) {
      return belongs;
    }
    boolean known = of.stream().anyMatch(found::contains);
    return "%s, which %s not in the pipeline %s%s"
        .formatted(
            belongs, one ? "is" : "are", String.join("|", pipeline), known ? "" : " and not found");
  }

  private Set<String> connectorNames() {
    Set<String> names = new LinkedHashSet<>(inPipeline.keySet());
    names.add(PIPELINE_KEY);
    names.addAll(owners.keySet());
    names.addAll(KnownKeys.ofStages().keySet());
    return names;
  }

  static List<String> names(ConfigKey<?> key) {
    return Stream.concat(Stream.of(key.name()), key.aliases().stream()).toList();
  }

  private void error(Setting setting, String message) {
    findings.add(
        ConfigProblem.error(setting.keyAt(), setting.key(), message).about(setting.shown(), ""));
  }

  private void ignored(Setting setting, String why) {
    findings.add(
        ConfigProblem.warning(setting.keyAt(), setting.key(), "is ignored: " + why)
            .about(setting.shown(), ""));
  }
}
