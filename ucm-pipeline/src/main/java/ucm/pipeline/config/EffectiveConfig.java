package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;

/** Every declared key of a configuration with the value that counts and where it came from. */
public final class EffectiveConfig {

  /** The section of what stands beside the connector. */
  public static final String TOP_LEVEL = "top level";

  /** The section of what concerns the pipeline as a whole. */
  public static final String PIPELINE = "pipeline";

  /**
   * One key.
   *
   * @param section {@link #TOP_LEVEL}, {@link #PIPELINE}, or the name of a stage
   * @param key its name
   * @param value its value as text
   * @param origin where that came from; source {@code default} when it was not set
   */
  public record Entry(String section, String key, String value, ConfigOrigin origin) {}

  private final List<Entry> entries;

  private EffectiveConfig(List<Entry> entries) {
    this.entries = List.copyOf(entries);
  }

  static EffectiveConfig of(UcmConfig config, StoreCatalog catalog) {
    List<Entry> entries = new ArrayList<>();
    StoreConfig top = config.topLevelConfig();
    for (ConfigKey<?> key : ConnectorKeys.topLevel()) {
      Entry entry = entry(TOP_LEVEL, key, top, config.topLevel());
      boolean ruled = config.isNfs() && key == ConnectorKeys.ENABLE_EVENT_SYNC && !top.isSet(key);
      entries.add(
          ruled
              ? new Entry(TOP_LEVEL, key.name(), "false", ConfigOrigin.of("default of UcmNfsStore"))
              : entry);
    }
    Optional<PipelineSpec> spec = config.findPipeline(new ArrayList<>());
    StoreConfig values = config.storeConfig();
    String chain = spec.map(PipelineSpec::toString).orElse("none");
    ConfigOrigin chainAt =
        config.isNfs()
            ? ConfigOrigin.of("default of UcmNfsStore")
            : values.origin(ConnectorKeys.STORE_PIPELINE);
    entries.add(new Entry(PIPELINE, ConnectorKeys.STORE_PIPELINE.name(), chain, chainAt));
    List<String> stages =
        spec.map(PipelineSpec::stages).orElse(List.of()).stream().distinct().toList();
    Map<String, List<ConfigKey<?>>> declared = catalog.configKeys(stages);
    for (String stage : stages) {
      for (ConfigKey<?> key : declared.getOrDefault(stage, List.of())) {
        entries.add(entry(stage, key, values, config.connector()));
      }
    }
    return new EffectiveConfig(entries);
  }

  private static Entry entry(
      String section, ConfigKey<?> key, StoreConfig values, Map<String, Setting> settings) {
    if (!values.isSet(key)) {
      return new Entry(section, key.name(), key.defaultText(), values.origin(key));
    }
    Setting setting = settings.get(key.name());
    for (String alias : key.aliases()) {
      setting = setting == null ? settings.get(alias) : setting;
    }
    String value = setting == null ? "" : setting.shown();
    return new Entry(section, key.name(), value, values.origin(key));
  }

  /** The keys, section by section. */
  public List<Entry> entries() {
    return entries;
  }

  /** A table for people: section headings, then key, value and origin in columns. */
  public String text() {
    int keyWidth = entries.stream().mapToInt(e -> e.key().length()).max().orElse(0);
    int valueWidth = entries.stream().mapToInt(e -> e.value().length()).max().orElse(0);
    StringBuilder text = new StringBuilder();
    String section = "";
    for (Entry entry : entries) {
      if (!entry.section().equals(section)) {
        section = entry.section();
        text.append(text.isEmpty() ? "" : "\n").append('[').append(section).append("]\n");
      }
      text.append(pad(entry.key(), keyWidth))
          .append("  ")
          .append(pad(entry.value(), Math.min(valueWidth, 40)))
          .append("  ")
          .append(entry.origin())
          .append('\n');
    }
    return text.toString();
  }

  /** The same as plain maps, lists, texts and numbers, for JSON. */
  public Map<String, Object> data() {
    List<Map<String, Object>> rows = new ArrayList<>();
    for (Entry entry : entries) {
      Map<String, Object> row = new LinkedHashMap<>();
      row.put("section", entry.section());
      row.put("key", entry.key());
      row.put("value", entry.value());
      row.put("source", entry.origin().source());
      row.put("line", entry.origin().line());
      row.put("column", entry.origin().column());
      rows.add(row);
    }
    return Map.of("entries", rows);
  }

  private static String pad(String text, int width) {
    return text + " ".repeat(Math.max(0, width - text.length()));
  }

  @Override
  public String toString() {
    return text();
  }
}
