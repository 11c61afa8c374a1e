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

/**
 * Every declared key of a configuration with the value in force and where it came from.
 *
 * @param entries the keys, section by section
 */
public record EffectiveConfig(List<Entry> entries) {

  /** The section of what stands beside the connector. */
  public static final String TOP_LEVEL = "top level";

  /** The section of what concerns the pipeline as a whole. */
  public static final String PIPELINE = "pipeline";

  private static final ConfigOrigin OF_NFS = ConfigOrigin.of("default of UcmNfsStore");

  /**
   * One key.
   *
   * @param section {@link #TOP_LEVEL}, {@link #PIPELINE}, or the name of a stage
   * @param key its name
   * @param value its value as text
   * @param origin where that came from; source {@code default} when it was not set
   */
  public record Entry(String section, String key, String value, ConfigOrigin origin) {}

  public EffectiveConfig {
    entries = List.copyOf(entries);
  }

  static EffectiveConfig of(UcmConfig config, StoreCatalog catalog) {
    List<Entry> entries = new ArrayList<>();
    for (ConfigKey<?> key : ConnectorSettings.TOP_LEVEL) {
      boolean ruled =
          config.isNfs() && key == ConnectorSettings.ENABLE_EVENT_SYNC && !config.isSet(key);
      entries.add(
          ruled
              ? new Entry(TOP_LEVEL, key.name(), "false", OF_NFS)
              : entry(TOP_LEVEL, key, config.topLevel()));
    }
    Optional<PipelineSpec> spec = config.findPipeline(new ArrayList<>());
    String key = ConnectorSettings.STORE_PIPELINE.name();
    ConfigOrigin chainAt =
        config.isNfs() ? OF_NFS : config.storeConfig().origin(ConnectorSettings.STORE_PIPELINE);
    entries.add(new Entry(PIPELINE, key, spec.map(PipelineSpec::toString).orElse("none"), chainAt));
    List<String> stages =
        spec.map(PipelineSpec::stages).orElse(List.of()).stream().distinct().toList();
    Map<String, List<ConfigKey<?>>> declared = catalog.configKeys(stages);
    for (int i = 0; i < stages.size(); i++) {
      String stage = stages.get(i);
      Map<String, Object> suggested = catalog.suggestions(stages.subList(i + 1, stages.size()));
      Map<String, StoreConfig.Value> settled =
          catalog.settled(stage, config.storeConfig().withSuggestions(suggested));
      for (ConfigKey<?> own : declared.getOrDefault(stage, List.of())) {
        Entry entry = entry(stage, own, config.connector());
        StoreConfig.Value inForce = settled.get(own.name());
        entries.add(
            inForce == null
                ? entry
                : new Entry(stage, own.name(), String.valueOf(inForce.raw()), inForce.origin()));
      }
    }
    return new EffectiveConfig(entries);
  }

  private static Entry entry(String section, ConfigKey<?> key, Map<String, Setting> settings) {
    StoreConfig values = Setting.view(settings);
    Setting setting = Setting.find(settings, key);
    String value = values.isSet(key) && setting != null ? setting.shown() : key.defaultText();
    return new Entry(section, key.name(), value, values.origin(key));
  }

  /** A table for people: section headings, then key, value and origin in columns. */
  public String text() {
    int keyWidth = entries.stream().mapToInt(e -> e.key().length()).max().orElse(1);
    int valueWidth = entries.stream().mapToInt(e -> e.value().length()).max().orElse(1);
    String row = "%-" + keyWidth + "s  %-" + Math.clamp(valueWidth, 1, 40) + "s  %s%n";
    StringBuilder text = new StringBuilder();
    String section = "";
    for (Entry entry : entries) {
      if (!entry.section().equals(section)) {
        section = entry.section();
        text.append(text.isEmpty() ? "" : "\n").append('[').append(section).append("]\n");
      }
      text.append(row.formatted(entry.key(), entry.value(), entry.origin()));
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

  @Override
  public String toString() {
    return text();
  }
}
