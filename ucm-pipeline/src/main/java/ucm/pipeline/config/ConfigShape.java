package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.pipeline.catalog.NearestName;
import ucm.pipeline.config.YamlNode.Entry;
import ucm.pipeline.config.YamlNode.YamlList;
import ucm.pipeline.config.YamlNode.YamlMap;
import ucm.pipeline.config.YamlNode.YamlScalar;

/**
 * Takes a configuration file apart into what stands at its top level and what its connector is given,
 * in both shapes:
 *
 * <pre>
 *   ucm_connectors:                         ucm_connector_name: ...
 *     - ucm_connector_name: ...             ucm_connector_config: {...}
 *       ucm_connector_config: {...}
 * </pre>
 *
 * What does not fit is recorded, and the rest is still read.
 */
public final class ConfigShape {

  public static final String PIPELINE_STORE = "UcmPipelineStore";
  static final String NFS_STORE = "UcmNfsStore";

  static final String CONNECTORS = "ucm_connectors";
  static final String NAME = "ucm_connector_name";
  static final String CONFIG = "ucm_connector_config";

  private static final List<String> NAMES = List.of(PIPELINE_STORE, NFS_STORE);
  private static final String ALLOWED = "one of " + String.join(", ", NAMES);

  /** Keys by which a configuration of LMCache is told. */
  private static final List<String> LMCACHE =
      List.of("remote_storage_plugins", "remote_url", "chunk_size", "local_cpu");

  private final List<ConfigProblem> problems = new ArrayList<>();
  private final Map<String, Setting> topLevel = new LinkedHashMap<>();
  private final Map<String, Setting> connector = new LinkedHashMap<>();
  private String connectorName = PIPELINE_STORE;
  private Optional<ConfigOrigin> connectorAt = Optional.empty();

  private ConfigShape() {}

  static UcmConfig read(YamlMap root, String source) {
    ConfigShape shape = new ConfigShape();
    shape.readRoot(root, ConfigOrigin.of(source));
    return new UcmConfig(
        source,
        shape.connectorName,
        shape.connectorAt,
        shape.topLevel,
        shape.connector,
        shape.problems);
  }

  private void readRoot(YamlMap root, ConfigOrigin at) {
    Map<String, Entry> own = new LinkedHashMap<>();
    for (Entry entry : root.entries()) {
      switch (entry.key()) {
        case CONNECTORS, NAME, CONFIG -> own.put(entry.key(), entry);
        default -> Setting.flatten("", entry, topLevel, problems);
      }
    }
    Entry listed = own.remove(CONNECTORS);
    Optional<String> lmCache = LMCACHE.stream().filter(topLevel::containsKey).findFirst();
    if (listed != null) {
      for (Entry flat : own.values()) {
        error(
            flat.at(), flat.key(), "stands beside " + CONNECTORS + "; keep one of the two shapes");
      }
      readList(listed);
    } else if (own.isEmpty() && lmCache.isPresent()) {
      // One finding instead of one for each of its keys.
      topLevel.clear();
      error(
          at,
          "",
          "is a configuration of LMCache (it has %s); UCM needs %s"
              .formatted(lmCache.get(), CONNECTORS));
    } else {
      readConnector(own, at);
    }
  }

  private void readList(Entry listed) {
    if (!(listed.value() instanceof YamlList list) || list.items().isEmpty()) {
      error(
          listed.at(),
          CONNECTORS,
          "found %s; it is a list of one map with %s and %s"
              .formatted(listed.value().kind(), NAME, CONFIG));
      return;
    }
    for (YamlNode more : list.items().subList(1, list.items().size())) {
      error(more.at(), CONNECTORS, "a second connector starts here; only one is supported");
    }
    YamlNode item = list.items().getFirst();
    if (!(item instanceof YamlMap map)) {
      error(item.at(), CONNECTORS, "found " + item.kind() + "; a connector is a map");
      return;
    }
    Map<String, Entry> own = new LinkedHashMap<>();
    for (Entry entry : map.entries()) {
      switch (entry.key()) {
        case NAME, CONFIG -> own.put(entry.key(), entry);
        default -> error(entry.at(), entry.key(), misplaced(entry.key()));
      }
    }
    readConnector(own, map.at());
  }

  private static String misplaced(String key) {
    boolean top = ConnectorSettings.TOP_LEVEL.stream().anyMatch(known -> known.name().equals(key));
    return "does not belong to a connector, which has %s and %s; %s"
        .formatted(
            NAME,
            CONFIG,
            top
                ? "move it to the top level, beside " + CONNECTORS
                : "keys of stages belong into " + CONFIG);
  }

  private void readConnector(Map<String, Entry> own, ConfigOrigin at) {
    readName(own.get(NAME), at);
    Entry config = own.get(CONFIG);
    if (config == null) {
      error(at, CONFIG, "is required and not set; it is a map of the pipeline's keys");
    } else if (config.value() instanceof YamlMap map) {
      connectorAt = Optional.of(config.at());
      map.entries().forEach(entry -> Setting.flatten("", entry, connector, problems));
    } else {
      YamlNode value = config.value();
      error(
          value.at(),
          CONFIG,
          "found %s; it is a map of the pipeline's keys".formatted(value.kind()));
    }
  }

  private void readName(@Nullable Entry name, ConfigOrigin at) {
    if (name == null) {
      error(at, NAME, "is required and not set; allowed is " + ALLOWED);
    } else if (name.value() instanceof YamlScalar(_, String text) && NAMES.contains(text)) {
      connectorName = text;
    } else {
      String found = name.value().kind();
      String nearest = NearestName.among(NAMES, found);
      String hint = nearest.isEmpty() ? "; allowed" : "; did you mean " + nearest + "? Allowed";
      problems.add(
          ConfigProblem.error(
                  name.value().at(), NAME, "found %s%s is %s".formatted(found, hint, ALLOWED))
              .about(found, ALLOWED)
              .near(nearest));
    }
  }

  private void error(ConfigOrigin at, String key, String message) {
    problems.add(ConfigProblem.error(at, key, message));
  }
}
