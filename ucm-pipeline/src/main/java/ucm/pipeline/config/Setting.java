package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;
import ucm.pipeline.config.YamlNode.Entry;
import ucm.pipeline.config.YamlNode.YamlList;
import ucm.pipeline.config.YamlNode.YamlMap;
import ucm.pipeline.config.YamlNode.YamlScalar;

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

  private static final Pattern SECRET =
      Pattern.compile("secret|password|access_key|credential", Pattern.CASE_INSENSITIVE);
  // Of a URL.
  private static final Pattern USER = Pattern.compile("(?<=://)[^/@\\s,\"]*(?=@)");
  private static final Pattern QUERY = Pattern.compile("(?<=://[^\\s,\"?]{0,200}\\?)[^\\s,\"]*");

  static Setting of(String key, Object raw, ConfigOrigin origin) {
    return new Setting(key, raw, origin, origin, "");
  }

  /** Whether the key was written without a value. */
  public boolean isEmpty() {
    return raw == null && fault.isEmpty();
  }

  /** The value as a person wrote it, more or less; what may be secret is left out. */
  String shown() {
    if (raw == null) {
      return "";
    }
    String text = raw instanceof String it ? "\"" + it + "\"" : raw.toString();
    return SECRET.matcher(key).find()
        ? "\"***\""
        : QUERY.matcher(USER.matcher(text).replaceAll("***")).replaceAll("***");
  }

  /** That this value cannot be used, with what is allowed instead. */
  ConfigProblem refused(String why, String allowed) {
    return ConfigProblem.error(valueAt, key, why).about(shown(), allowed);
  }

  /** The setting of a key, by its name or an alias; null when there is none. */
  static @Nullable Setting find(Map<String, Setting> settings, ConfigKey<?> key) {
    Setting setting = settings.get(key.name());
    for (String alias : key.aliases()) {
      setting = setting == null ? settings.get(alias) : setting;
    }
    return setting;
  }

  /** Settings as a store reads them. */
  public static StoreConfig view(Map<String, Setting> settings) {
    Map<String, StoreConfig.Value> values = new LinkedHashMap<>();
    settings.forEach(
        (key, setting) -> {
          if (setting.raw() != null) {
            values.put(key, new StoreConfig.Value(setting.raw(), setting.valueAt()));
          }
        });
    return new StoreConfig(values);
  }

  /**
   * Turns an entry of a map into settings, nested maps into dotted keys.
   *
   * @param into gets them by key; the first of a key is kept
   * @param problems get a key that is set twice
   */
  public static void flatten(
      String prefix, Entry entry, Map<String, Setting> into, List<ConfigProblem> problems) {
    String key = prefix + entry.key();
    if (entry.value() instanceof YamlMap map && !map.entries().isEmpty()) {
      map.entries().forEach(child -> flatten(key + ".", child, into, problems));
      return;
    }
    Setting setting = leaf(key, entry);
    Setting earlier = into.putIfAbsent(key, setting);
    if (earlier != null) {
      problems.add(
          ConfigProblem.error(
              setting.keyAt,
              key,
              "is set here and in line %s; keep one".formatted(earlier.keyAt.line())));
    }
  }

  private static Setting leaf(String key, Entry entry) {
    YamlNode value = entry.value();
    return switch (value) {
      case YamlMap _ -> new Setting(key, null, entry.at(), value.at(), "found an empty map");
      case YamlScalar(_, Object raw) -> new Setting(key, raw, entry.at(), value.at(), "");
      case YamlList list -> {
        List<Object> values = new ArrayList<>();
        for (YamlNode item : list.items()) {
          if (!(item instanceof YamlScalar scalar) || scalar.value() == null) {
            String fault = "found " + item.kind() + " in a list; a list holds plain values";
            yield new Setting(key, null, entry.at(), item.at(), fault);
          }
          values.add(scalar.value());
        }
        yield new Setting(key, List.copyOf(values), entry.at(), value.at(), "");
      }
    };
  }
}
