package ucm.pipeline.yaml;

import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigOrigin;

/** A node of a YAML file, with the position where it starts. */
public sealed interface YamlNode {

  /** Where it starts. */
  ConfigOrigin at();

  /** What a message calls it. */
  String kind();

  /**
   * A key of a map and its value.
   *
   * @param at where the key stands
   */
  record Entry(String key, ConfigOrigin at, YamlNode value) {}

  /** A map; keys are in the order of the file and differ from one another. */
  record YamlMap(ConfigOrigin at, List<Entry> entries) implements YamlNode {
    @Override
    public String kind() {
      return "a map";
    }
  }

  /** A list. */
  record YamlList(ConfigOrigin at, List<YamlNode> items) implements YamlNode {
    @Override
    public String kind() {
      return "a list";
    }
  }

  /**
   * A plain value.
   *
   * @param value a String, Long, Double or Boolean; null when there is none
   */
  record YamlScalar(ConfigOrigin at, @Nullable Object value) implements YamlNode {
    @Override
    public String kind() {
      return value == null
          ? "nothing"
          : value instanceof String ? "\"" + value + "\"" : value.toString();
    }
  }
}
