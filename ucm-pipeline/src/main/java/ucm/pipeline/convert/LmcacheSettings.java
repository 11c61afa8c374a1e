package ucm.pipeline.convert;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.StoreConfig;
import ucm.pipeline.config.ConfigFinding;
import ucm.pipeline.config.Setting;
import ucm.pipeline.yaml.YamlNode.Entry;
import ucm.pipeline.yaml.YamlNode.YamlMap;

/**
 * LMCache's YAML, as its documentation of the 3FS backend describes it: the directories come from the plugin's
 * own {@code base_path}, else from {@code hf3fs_base_path}, or from the deprecated {@code remote_url}; all
 * that is of the backend stands in {@code extra_config}. The ranges and defaults are LMCache's.
 */
final class LmcacheSettings {

  private static final String EXTRA = "extra_config";
  private static final String PLUGIN = "remote_storage_plugin.";
  private static final String BACKEND = "hf3fs";
  private static final String SCHEME = "hf3fs://";
  private static final long MIB = 1L << 20;

  private static final ConfigKey<String> REMOTE_URL = ConfigKey.text("remote_url");
  private static final ConfigKey<String> BASE_PATH = ConfigKey.text("hf3fs_base_path");
  private static final ConfigKey<String> MOUNT_POINT = ConfigKey.text("hf3fs_mount_point");
  private static final ConfigKey<Long> IOV_SIZE =
      ConfigKey.longInteger("hf3fs_iov_size").range(100 * MIB, 2048 * MIB).defaultTo(200 * MIB);
  private static final ConfigKey<Integer> ENTRIES =
      ConfigKey.integer("hf3fs_ior_entries").range(128, 1024).defaultTo(256);
  private static final ConfigKey<Integer> DEPTH =
      ConfigKey.integer("hf3fs_io_depth").range(-128, 128).defaultTo(0);
  private static final ConfigKey<Integer> NUMA =
      ConfigKey.integer("hf3fs_numa_id").range(-1, 1023).defaultTo(-1);
  private static final ConfigKey<Integer> THREADS =
      ConfigKey.integer("hf3fs_io_thread_num").range(2, 16).defaultTo(4);
  private static final ConfigKey<Double> CPU_SIZE =
      ConfigKey.number("max_local_cpu_size").atLeast(0).defaultTo(5.0);
  private static final ConfigKey<Double> BLOCKING_TIMEOUT =
      ConfigKey.number("blocking_timeout_secs").range(0.001, 86_400);
  private static final ConfigKey<Boolean> LAYERWISE = ConfigKey.flag("use_layerwise");

  private static final Map<String, String> WHY =
      Map.of(
          "chunk_size",
          "a block of UCM has the tokens of the engine's, and what LMCache stored is not read",
          "local_cpu",
          "the Cache stage always keeps blocks in host memory, so it needs no switch",
          "local_disk",
          "Cache|Ds3fs has no stage for local disks in between",
          "max_local_disk_size",
          "Cache|Ds3fs has no stage for local disks in between",
          "remote_serde",
          "blocks are stored as the engine has them");

  private final List<ConfigFinding> findings;
  private final Map<String, Setting> settings = new LinkedHashMap<>();
  private final Set<String> used = new HashSet<>();
  private final StoreConfig config;
  private final ConfigOrigin root;

  LmcacheSettings(YamlMap file, List<ConfigFinding> findings) {
    this.findings = findings;
    this.root = ConfigOrigin.of(file.at().source());
    for (Entry entry : file.entries()) {
      if (entry.key().equals(EXTRA)) {
        addExtra(entry);
      } else {
        add("", entry);
      }
    }
    Map<String, StoreConfig.Value> values = new LinkedHashMap<>();
    settings.forEach(
        (key, setting) -> {
          if (setting.raw() != null) {
            values.put(key, new StoreConfig.Value(setting.raw(), setting.valueAt()));
          }
        });
    config = new StoreConfig(values);
  }

  private void addExtra(Entry extra) {
    if (extra.value() instanceof YamlMap map) {
      map.entries().forEach(entry -> add("", entry));
    } else {
      findings.add(
          ConfigFinding.error(
              extra.value().at(), EXTRA, "is a map of keys; found " + extra.value().kind()));
    }
  }

  private void add(String prefix, Entry entry) {
    List<Setting> flat = new ArrayList<>();
    Setting.flatten(prefix, entry, flat);
    for (Setting setting : flat) {
      Setting earlier = settings.putIfAbsent(setting.key(), setting);
      if (earlier != null) {
        findings.add(
            ConfigFinding.error(
                setting.keyAt(),
                setting.key(),
                "stands here and in line " + earlier.keyAt().line() + "; keep one"));
      }
    }
  }

  /** Writes what there is; problems go to the findings. */
  void into(Ds3fsDraft draft) {
    draft.comment("Made for LMCache's hf3fs backend. Blocks that LMCache stored are not read.");
    List<String> paths = directories();
    checkMount(paths);
    draft.set("storage_backends", paths);
    Double gib = get(CPU_SIZE);
    draft.set(
        "cache_buffer_capacity_gb",
        gib,
        "Host memory of each worker: LMCache's max_local_cpu_size"
            + (config.isSet(CPU_SIZE) ? "." : ", 5 unless set."));
    if (gib == 0 && config.isSet(CPU_SIZE)) {
      config.reject(CPU_SIZE, "is 0; the Cache stage needs room for at least one block: raise it");
    }
    draft.set("stream_number", get(THREADS));
    draft.set("ior_entries", get(ENTRIES));
    draft.set("ior_depth", get(DEPTH));
    draft.set("numa_id", get(NUMA));
    draft.set("iov_size", get(IOV_SIZE));
    find(MOUNT_POINT).ifPresent(mount -> draft.set(MOUNT_POINT.name(), mount));
    find(BLOCKING_TIMEOUT)
        .ifPresent(
            seconds ->
                draft.set(
                    "timeout_ms",
                    Math.round(seconds * 1000),
                    "LMCache's blocking_timeout_secs; here for each task, also those in between."));
    find(LAYERWISE).ifPresent(flag -> draft.setTopLevel(LAYERWISE.name(), flag));
    ConfigConversion.addProblems(config, findings);
    reportTheRest();
  }

  /** The directories of the one backend that is taken over. */
  private List<String> directories() {
    List<String> plugins = plugins();
    Setting url = settings.get(REMOTE_URL.name());
    List<String> ours = plugins.stream().filter(LmcacheSettings::isHf3fs).toList();
    if (!ours.isEmpty()) {
      for (String other : plugins) {
        if (!other.equals(ours.getFirst())) {
          findings.add(
              ConfigFinding.warning(
                  at("remote_storage_plugins"),
                  other,
                  "is left out: a pipeline has one storage stage; " + ours.getFirst() + " is it"));
        }
      }
      if (url != null && url.raw() != null) {
        findings.add(
            ConfigConversion.leftOut(
                url.keyAt(), url.key(), "remote_storage_plugins names " + ours.getFirst()));
        used.add(url.key());
      }
      return ofPlugin(ours.getFirst());
    }
    if (url != null && url.raw() != null) {
      return ofUrl(String.valueOf(url.raw()), url.valueAt());
    }
    findings.add(
        ConfigFinding.error(
            root,
            "",
            "keeps nothing in 3FS: neither remote_storage_plugins names a backend hf3fs, as in"
                + " [\"hf3fs.primary\"], nor is remote_url hf3fs:///a/directory"
                + (plugins.isEmpty() ? "" : "; found the plugins " + String.join(", ", plugins))));
    return List.of();
  }

  private List<String> plugins() {
    String key = "remote_storage_plugins";
    Setting setting = settings.get(key);
    used.add(key);
    if (setting == null || setting.isEmpty()) {
      return List.of();
    }
    if (setting.raw() instanceof List<?> list) {
      return list.stream().map(name -> String.valueOf(name).strip()).toList();
    }
    if (setting.raw() instanceof String text) {
      return Arrays.stream(text.split(",", -1)).map(String::strip).toList();
    }
    findings.add(
        ConfigFinding.error(
            setting.valueAt(), key, "is a list of names such as [\"hf3fs.primary\"]"));
    return List.of();
  }

  private static boolean isHf3fs(String plugin) {
    return plugin.equals(BACKEND) || plugin.startsWith(BACKEND + ".");
  }

  private List<String> ofPlugin(String plugin) {
    String own = PLUGIN + plugin + ".base_path";
    ConfigKey<String> key = ConfigKey.text(own);
    if (config.isSet(key)) {
      if (config.isSet(BASE_PATH)) {
        used.add(BASE_PATH.name());
        findings.add(
            ConfigConversion.leftOut(at(BASE_PATH.name()), BASE_PATH.name(), own + " is set"));
      }
      return paths(key);
    }
    if (config.isSet(BASE_PATH)) {
      return paths(BASE_PATH);
    }
    findings.add(
        ConfigFinding.error(
            root,
            own,
            "is required in extra_config and not set, nor is hf3fs_base_path: the directories in"
                + " 3FS, joined by commas"));
    return List.of();
  }

  private List<String> paths(ConfigKey<String> key) {
    return split(get(key), key.name(), config.origin(key));
  }

  private List<String> ofUrl(String url, ConfigOrigin at) {
    used.add(REMOTE_URL.name());
    if (!url.startsWith(SCHEME)) {
      findings.add(
          ConfigFinding.error(
              at,
              REMOTE_URL.name(),
              "is \"" + url + "\"; only hf3fs:///a/directory, with more after commas, is 3FS"));
      return List.of();
    }
    return split(url.substring(SCHEME.length()), REMOTE_URL.name(), at);
  }

  /** Paths joined by commas; blanks around them do not count. */
  private List<String> split(String text, String key, ConfigOrigin at) {
    List<String> paths = new ArrayList<>();
    for (String part : text.split(",", -1)) {
      String path = part.strip();
      if (!path.startsWith("/")) {
        findings.add(
            ConfigFinding.error(
                at,
                key,
                "names \"" + path + "\"; a directory in 3FS is an absolute path, such as /3fs/kv"));
      } else if (paths.contains(path)) {
        findings.add(ConfigFinding.error(at, key, "names " + path + " twice; keep it once"));
      } else {
        paths.add(path);
      }
    }
    return paths;
  }

  private void checkMount(List<String> paths) {
    String mount = find(MOUNT_POINT).orElse("");
    for (String path : paths) {
      String below = mount.endsWith("/") ? mount : mount + "/";
      if (!mount.isEmpty() && !path.equals(mount) && !path.startsWith(below)) {
        config.reject(
            MOUNT_POINT, "is " + mount + ", and " + path + " is not below it: correct one of them");
      }
    }
  }

  private <T> T get(ConfigKey<T> key) {
    used.add(key.name());
    return config.get(key);
  }

  private <T> Optional<T> find(ConfigKey<T> key) {
    used.add(key.name());
    return config.find(key);
  }

  private ConfigOrigin at(String key) {
    Setting setting = settings.get(key);
    return setting == null ? root : setting.keyAt();
  }

  private void reportTheRest() {
    for (Setting setting : settings.values()) {
      if (!used.contains(setting.key())) {
        findings.add(ConfigConversion.leftOut(setting.keyAt(), setting.key(), why(setting)));
      }
    }
  }

  private static String why(Setting setting) {
    @Nullable String known = WHY.get(setting.key());
    return known != null
        ? known
        : setting.isEmpty() ? "it has no value" : "UCM has no counterpart for it";
  }
}
