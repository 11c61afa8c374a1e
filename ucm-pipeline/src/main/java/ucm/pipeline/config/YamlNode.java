package ucm.pipeline.config;

import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigOrigin;

/** A node of a YAML file, with the position where it starts. */
public sealed interface YamlNode {

  ConfigOrigin at();

  /** What a message calls it. */
  default String kind() {
    return switch (this) {
      case YamlMap _ -> "a map";
      case YamlList _ -> "a list";
      case YamlScalar(_, String text) -> "\"" + text + "\"";
      case YamlScalar(_, Object value) -> value == null ? "nothing" : value.toString();
    };
  }

  /** A key of a map, where it stands, and its value. */
  record Entry(String key, ConfigOrigin at, YamlNode value) {}

  /** A map; keys are in the order of the file and differ from one another. */
  record YamlMap(ConfigOrigin at, List<Entry> entries) implements YamlNode {}

  record YamlList(ConfigOrigin at, List<YamlNode> items) implements YamlNode {}

  /** A plain value: a String, Long, Double or Boolean; null when there is none. */
  record YamlScalar(ConfigOrigin at, @Nullable Object value) implements YamlNode {}
}
