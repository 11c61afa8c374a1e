package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.pipeline.catalog.NearestName;
import ucm.pipeline.catalog.PipelineSpec;

/**
 * Says of every key that was set which part knows it: the pipeline, one of its stages, a stage
 * that is not in the pipeline, or the original UCM. Values are not its business.
 */
final class KeyCheck {

  private static final String BESIDE = "beside " + ConfigShape.CONNECTORS;

  private final Map<String, List<ConfigKey<?>>> declared;
  private @Nullable Supplier<Map<String, List<ConfigKey<?>>>> unasked;
  private final Optional<PipelineSpec> pipeline;
  private final boolean nfs;

  /** Declared by a stage of the pipeline, by name and alias. */
  private final Map<String, ConfigKey<?>> inPipeline = new HashMap<>();

  private final Map<String, ConfigKey<?>> topLevel = new HashMap<>();
  private final Map<String, Setting> firstUse = new HashMap<>();
  private final Set<String> ignoredRoots = new HashSet<>();

  /**
   * Prepares a check.
   *
   * @param declared the keys of stores, by name
   * @param unasked gives the keys of all others; asked only where a key is not known otherwise
   * @param pipeline the stages in use; when it cannot be told, or one of them was not found, all
   *     stages count as in use
   */
  KeyCheck(
      Map<String, List<ConfigKey<?>>> declared,
      Supplier<Map<String, List<ConfigKey<?>>>> unasked,
      Optional<PipelineSpec> pipeline,
      boolean nfs) {
    this.declared = new TreeMap<>(declared);
    this.unasked = unasked;
    this.pipeline = pipeline;
    this.nfs = nfs;
    boolean allFound =
        pipeline.isPresent() && declared.keySet().containsAll(pipeline.get().stages());
    declared.forEach(
        (stage, keys) -> {
          if (!allFound || isUsed(stage)) {
            keys.forEach(key -> names(key).forEach(name -> inPipeline.put(name, key)));
          }
        });
    ConnectorKeys.topLevel().forEach(key -> topLevel.put(key.name(), key));
  }

  /** Judges a key of {@code ucm_connector_config}; empty when all is well with it. */
  Optional<ConfigFinding> connector(Setting setting) {
    String key = setting.key();
    if (key.equals(ConnectorKeys.STORE_PIPELINE.name())) {
      return nfs ? ignored(setting, "UcmNfsStore is the pipeline Nfs") : Optional.empty();
    }
    ConfigKey<?> known = inPipeline.get(key);
    if (known != null) {
      Setting earlier = firstUse.putIfAbsent(known.name(), setting);
      if (earlier != null) {
        return error(
            setting, "means the same as " + earlier.key() + ", which is set too; keep one");
      }
      return usable(setting, known);
    }
    List<String> owners = owners(key);
    if (KnownKeys.isFromEngine(key)
        || KnownKeys.stagesOf(key).stream().anyMatch(stage -> isUsed(stage) && !isFound(stage))) {
      return Optional.empty();
    }
    if (!owners.isEmpty()) {
      return ignored(setting, notInPipeline(owners));
    }
    if (topLevel.containsKey(key)) {
      return error(setting, "belongs to the top level, " + BESIDE + "; move it there");
    }
    return strange(setting, inPipeline, connectorNames());
  }

  /** Judges a key of the top level; empty when all is well with it. */
  Optional<ConfigFinding> topLevel(Setting setting) {
    String key = setting.key();
    ConfigKey<?> known = topLevel.get(key);
    if (known != null) {
      return usable(setting, known);
    }
    boolean connectorKey = key.equals(ConnectorKeys.STORE_PIPELINE.name());
    if (connectorKey || inPipeline.containsKey(key) || !owners(key).isEmpty()) {
      return error(setting, "belongs to " + ConfigShape.CONFIG + "; move it there");
    }
    Set<String> names = new LinkedHashSet<>();
    names.add(ConfigShape.CONNECTORS);
    names.add(ConfigShape.NAME);
    names.add(ConfigShape.CONFIG);
    ConnectorKeys.topLevel().forEach(top -> names.add(top.name()));
    return strange(setting, topLevel, names);
  }

  private Optional<ConfigFinding> usable(Setting setting, ConfigKey<?> known) {
    if (!setting.fault().isEmpty()) {
      return Optional.of(
          ConfigFinding.error(
                  setting.valueAt(),
                  setting.key(),
                  setting.fault() + "; allowed is " + known.allowed())
              .about("", known.allowed()));
    }
    return setting.isEmpty()
        ? warning(setting, "has no value and counts as not set")
        : Optional.empty();
  }

  /** Neither the pipeline nor a stage nor the top level knows this key. */
  private Optional<ConfigFinding> strange(
      Setting setting, Map<String, ConfigKey<?>> own, Set<String> names) {
    String key = setting.key();
    String root = root(key);
    String why = KnownKeys.whyIgnored(root);
    if (why != null) {
      return ignoredRoots.add(root) ? ignored(setting.named(root), why) : Optional.empty();
    }
    List<String> children = names.stream().filter(n -> n.startsWith(key + ".")).sorted().toList();
    if (!children.isEmpty()) {
      return error(setting, "is a map with the keys " + String.join(", ", children));
    }
    ConfigKey<?> parent = parent(key, own);
    if (parent != null) {
      return error(setting, parent.name() + " is no map; allowed is " + parent.allowed());
    }
    String nearest = NearestName.among(names, key);
    String hint = nearest.isEmpty() ? "" : "; did you mean " + nearest + "?";
    return Optional.of(
        ConfigFinding.error(setting.keyAt(), key, "is no known key" + hint)
            .about(setting.shown(), "")
            .near(nearest));
  }

  private static String root(String key) {
    return key.substring(0, key.indexOf('.') < 0 ? key.length() : key.indexOf('.'));
  }

  private static @Nullable ConfigKey<?> parent(String key, Map<String, ConfigKey<?>> own) {
    for (int dot = key.lastIndexOf('.'); dot > 0; dot = key.lastIndexOf('.', dot - 1)) {
      ConfigKey<?> parent = own.get(key.substring(0, dot));
      if (parent != null) {
        return parent;
      }
    }
    return null;
  }

  /** The stages, found or not, that have this key and are not in the pipeline. */
  private List<String> owners(String key) {
    List<String> owners = ownersAmongDeclared(key);
    Supplier<Map<String, List<ConfigKey<?>>>> others = unasked;
    if (others != null
        && owners.isEmpty()
        && !KnownKeys.isFromEngine(key)
        && !topLevel.containsKey(key)
        && KnownKeys.whyIgnored(root(key)) == null) {
      unasked = null;
      others.get().forEach(declared::putIfAbsent);
      owners = ownersAmongDeclared(key);
    }
    return owners;
  }

  private List<String> ownersAmongDeclared(String key) {
    Set<String> owners = new LinkedHashSet<>();
    declared.forEach(
        (stage, keys) -> {
          if (!isUsed(stage) && keys.stream().anyMatch(known -> names(known).contains(key))) {
            owners.add(stage);
          }
        });
    if (owners.isEmpty()) {
      KnownKeys.stagesOf(key).stream().filter(stage -> !isUsed(stage)).forEach(owners::add);
    }
    return List.copyOf(owners);
  }

  private boolean isUsed(String stage) {
    return pipeline.isPresent() && pipeline.get().stages().contains(stage);
  }

  private boolean isFound(String stage) {
    return declared.containsKey(stage);
  }

  private String notInPipeline(List<String> owners) {
    String stages = (owners.size() == 1 ? "stage " : "stages ") + String.join(" and ", owners);
    if (pipeline.isEmpty()) {
      return "it belongs to " + stages;
    }
    boolean found = owners.stream().anyMatch(this::isFound);
    return "it belongs to "
        + stages
        + (owners.size() == 1 ? ", which is" : ", which are")
        + " not in the pipeline "
        + pipeline.get()
        + (found ? "" : " and not found");
  }

  private Set<String> connectorNames() {
    Set<String> names = new LinkedHashSet<>(inPipeline.keySet().stream().sorted().toList());
    names.add(ConnectorKeys.STORE_PIPELINE.name());
    declared.values().forEach(keys -> keys.forEach(key -> names.addAll(names(key))));
    names.addAll(KnownKeys.ofStages().keySet().stream().sorted().toList());
    return names;
  }

  private static List<String> names(ConfigKey<?> key) {
    List<String> names = new ArrayList<>(key.aliases());
    names.addFirst(key.name());
    return names;
  }

  private static Optional<ConfigFinding> error(Setting setting, String message) {
    return Optional.of(
        ConfigFinding.error(setting.keyAt(), setting.key(), message).about(setting.shown(), ""));
  }

  private static Optional<ConfigFinding> warning(Setting setting, String message) {
    return Optional.of(
        ConfigFinding.warning(setting.keyAt(), setting.key(), message).about(setting.shown(), ""));
  }

  private static Optional<ConfigFinding> ignored(Setting setting, String why) {
    return warning(setting, "is ignored: " + why);
  }
}
