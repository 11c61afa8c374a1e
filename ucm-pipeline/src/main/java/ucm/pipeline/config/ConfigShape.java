package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigOrigin;
import ucm.pipeline.catalog.NearestName;
import ucm.pipeline.yaml.YamlNode;
import ucm.pipeline.yaml.YamlNode.Entry;
import ucm.pipeline.yaml.YamlNode.YamlList;
import ucm.pipeline.yaml.YamlNode.YamlMap;
import ucm.pipeline.yaml.YamlNode.YamlScalar;

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
  static final List<String> CONNECTOR_NAMES = List.of(PIPELINE_STORE, NFS_STORE);

  static final String CONNECTORS = "ucm_connectors";
  static final String NAME = "ucm_connector_name";
  static final String CONFIG = "ucm_connector_config";

  /** Keys by which a configuration of LMCache is told. */
  private static final List<String> LMCACHE =
      List.of("remote_storage_plugins", "remote_url", "chunk_size", "local_cpu");

  private final List<ConfigFinding> findings = new ArrayList<>();
  private final Map<String, Setting> topLevel = new LinkedHashMap<>();
  private final Map<String, Setting> connector = new LinkedHashMap<>();
  private String connectorName = "";
  private ConfigOrigin connectorAt;
  private boolean hasConnector;

  /** Takes a file apart. */
  ConfigShape(YamlMap root, String source) {
    this.connectorAt = ConfigOrigin.of(source);
    Entry listed = null;
    Entry name = null;
    Entry config = null;
    for (Entry entry : root.entries()) {
      switch (entry.key()) {
        case CONNECTORS -> listed = entry;
        case NAME -> name = entry;
        case CONFIG -> config = entry;
        default -> add(entry, topLevel);
      }
    }
    if (listed == null && name == null && config == null && isLmCache(source)) {
      return;
    }
    if (listed == null) {
      readConnector(name, config, connectorAt);
      return;
    }
    for (Entry flat : new Entry[] {name, config}) {
      if (flat != null) {
        error(
            flat.at(), flat.key(), "stands beside " + CONNECTORS + "; keep one of the two shapes");
      }
    }
    readList(listed);
  }

  /** A file of LMCache gets one finding instead of one for each of its keys. */
  private boolean isLmCache(String source) {
    for (String key : LMCACHE) {
      if (topLevel.containsKey(key)) {
        topLevel.clear();
        error(
            ConfigOrigin.of(source),
            "",
            "is a configuration of LMCache (it has " + key + "); UCM needs " + CONNECTORS);
        return true;
      }
    }
    return false;
  }

  private void readList(Entry listed) {
    if (!(listed.value() instanceof YamlList list) || list.items().isEmpty()) {
      error(
          listed.at(),
          CONNECTORS,
          "found "
              + listed.value().kind()
              + "; it is a list of one map with "
              + NAME
              + " and "
              + CONFIG);
      return;
    }
    for (YamlNode more : list.items().subList(1, list.items().size())) {
      error(more.at(), CONNECTORS, "a second connector starts here; only one is supported");
    }
    if (!(list.items().getFirst() instanceof YamlMap map)) {
      YamlNode item = list.items().getFirst();
      error(item.at(), CONNECTORS, "found " + item.kind() + "; a connector is a map");
      return;
    }
    Entry name = null;
    Entry config = null;
    for (Entry entry : map.entries()) {
      switch (entry.key()) {
        case NAME -> name = entry;
        case CONFIG -> config = entry;
        default -> error(entry.at(), entry.key(), misplaced(entry.key()));
      }
    }
    readConnector(name, config, map.at());
  }

  private static String misplaced(String key) {
    boolean top = ConnectorKeys.topLevel().stream().anyMatch(known -> known.name().equals(key));
    return "does not belong to a connector, which has "
        + NAME
        + " and "
        + CONFIG
        + "; "
        + (top
            ? "move it to the top level, beside " + CONNECTORS
            : "keys of stages belong into " + CONFIG);
  }

  private void readConnector(@Nullable Entry name, @Nullable Entry config, ConfigOrigin at) {
    if (name == null) {
      error(at, NAME, "is required and not set; allowed is one of " + allowedNames());
    } else {
      readName(name);
    }
    if (config == null) {
      error(at, CONFIG, "is required and not set; it is a map of the pipeline's keys");
    } else if (config.value() instanceof YamlMap map) {
      hasConnector = true;
      connectorAt = config.at();
      map.entries().forEach(entry -> add(entry, connector));
    } else {
      error(
          config.value().at(),
          CONFIG,
          "found " + config.value().kind() + "; it is a map of the pipeline's keys");
    }
  }

  private void readName(Entry entry) {
    if (entry.value() instanceof YamlScalar scalar
        && scalar.value() instanceof String text
        && CONNECTOR_NAMES.contains(text)) {
      connectorName = text;
      return;
    }
    String found = entry.value().kind();
    String nearest = NearestName.among(CONNECTOR_NAMES, found);
    findings.add(
        ConfigFinding.error(
                entry.value().at(),
                NAME,
                "found "
                    + found
                    + (nearest.isEmpty() ? "" : "; did you mean " + nearest + "?")
                    + (nearest.isEmpty() ? "; allowed" : " Allowed")
                    + " is one of "
                    + allowedNames())
            .about(found, "one of " + allowedNames())
            .near(nearest));
  }

  private static String allowedNames() {
    return String.join(", ", CONNECTOR_NAMES);
  }

  private void add(Entry entry, Map<String, Setting> section) {
    List<Setting> settings = new ArrayList<>();
    Setting.flatten("", entry, settings);
    for (Setting setting : settings) {
      Setting earlier = section.putIfAbsent(setting.key(), setting);
      if (earlier != null) {
        error(
            setting.keyAt(),
            setting.key(),
            "is set here and in line " + earlier.keyAt().line() + "; keep one");
      }
    }
  }

  private void error(ConfigOrigin at, String key, String message) {
    findings.add(ConfigFinding.error(at, key, message));
  }

  /** What did not fit. */
  List<ConfigFinding> findings() {
    return List.copyOf(findings);
  }

  /** The settings beside the connector. */
  Map<String, Setting> topLevel() {
    return topLevel;
  }

  /** The settings of the connector. */
  Map<String, Setting> connector() {
    return connector;
  }

  /** The name of the connector; that of a pipeline when the file names none that is known. */
  String connectorName() {
    return connectorName.isEmpty() ? PIPELINE_STORE : connectorName;
  }

  /** Whether there is a map of settings for the connector. */
  boolean hasConnector() {
    return hasConnector;
  }

  /** Where the connector's settings begin. */
  ConfigOrigin connectorAt() {
    return connectorAt;
  }
}
