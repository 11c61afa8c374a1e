package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigOrigin;
import ucm.pipeline.yaml.YamlNode;
import ucm.pipeline.yaml.YamlNode.Entry;
import ucm.pipeline.yaml.YamlNode.YamlList;
import ucm.pipeline.yaml.YamlNode.YamlMap;
import ucm.pipeline.yaml.YamlNode.YamlScalar;

/**
 * One configured value: a leaf of the file, or set by a program.
 *
 * @param key its name, dotted when it stands in a nested map
 * @param raw a String, Long, Double, Boolean or a List of these; null when it has no usable value
 * @param keyAt where the key stands
 * @param valueAt where the value stands
 * @param fault why there is no usable value, or empty
 */
public record Setting(
    String key, @Nullable Object raw, ConfigOrigin keyAt, ConfigOrigin valueAt, String fault) {

  /** A value set by a program. */
  static Setting of(String key, Object raw, ConfigOrigin origin) {
    return new Setting(key, raw, origin, origin, "");
  }

  /** The same under another name. */
  Setting named(String name) {
    return new Setting(name, raw, keyAt, valueAt, fault);
  }

  /** Whether the key was written without a value. */
  public boolean isEmpty() {
    return raw == null && fault.isEmpty();
  }

  /** The value as a person wrote it, more or less. */
  String shown() {
    return raw instanceof String text ? "\"" + text + "\"" : raw == null ? "" : raw.toString();
  }

  /** Turns an entry of a map into settings, nested maps into dotted keys. */
  @SuppressWarnings("exports") // For packages of this module.
  public static void flatten(String prefix, Entry entry, List<Setting> into) {
    String key = prefix + entry.key();
    ConfigOrigin keyAt = entry.at();
    switch (entry.value()) {
      case YamlMap map when map.entries().isEmpty() ->
          into.add(new Setting(key, null, keyAt, map.at(), "found an empty map"));
      case YamlMap map -> map.entries().forEach(child -> flatten(key + ".", child, into));
      case YamlList list -> into.add(ofList(key, keyAt, list));
      case YamlScalar scalar -> into.add(new Setting(key, scalar.value(), keyAt, scalar.at(), ""));
    }
  }

  private static Setting ofList(String key, ConfigOrigin keyAt, YamlList list) {
    List<Object> values = new ArrayList<>();
    for (YamlNode item : list.items()) {
      if (!(item instanceof YamlScalar scalar) || scalar.value() == null) {
        String fault = "found " + item.kind() + " in a list; a list holds plain values";
        return new Setting(key, null, keyAt, item.at(), fault);
      }
      values.add(scalar.value());
    }
    return new Setting(key, List.copyOf(values), keyAt, list.at(), "");
  }
}
