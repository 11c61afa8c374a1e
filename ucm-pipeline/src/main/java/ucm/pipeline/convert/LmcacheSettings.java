package ucm.pipeline.convert;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.StoreConfig;
import ucm.pipeline.config.Setting;
import ucm.pipeline.config.YamlNode;
import ucm.pipeline.config.YamlNode.Entry;
import ucm.pipeline.config.YamlNode.YamlMap;

/**
 * LMCache's YAML, as its documentation of the 3FS backend describes it: the directories come from the plugin's
 * own {@code base_path}, else from {@code hf3fs_base_path}, or from the deprecated {@code remote_url}; all
 * that is of the backend stands in {@code extra_config}. The ranges and defaults are LMCache's.
 */
final class LmcacheSettings {

  private static final String EXTRA = "extra_config";
  private static final String PLUGINS = "remote_storage_plugins";
  private static final String URL = "remote_url";
  private static final String SCHEME = "hf3fs://";
  private static final long MIB = 1L << 20;

  private static final ConfigKey<String> BASE_PATH = ConfigKey.text("hf3fs_base_path");
  private static final ConfigKey<String> MOUNT_POINT = ConfigKey.text("hf3fs_mount_point");
  private static final ConfigKey<Double> CPU_SIZE =
      ConfigKey.number("max_local_cpu_size").atLeast(0).defaultTo(5.0);
  private static final ConfigKey<Double> BLOCKING_TIMEOUT =
      ConfigKey.number("blocking_timeout_secs").range(0.001, 86_400);
  private static final ConfigKey<Boolean> LAYERWISE = ConfigKey.flag("use_layerwise");

  /** Taken over as they are, under our names. */
  private static final Map<String, ConfigKey<?>> SAME = new LinkedHashMap<>();

  static {
    SAME.put("stream_number", ConfigKey.integer("hf3fs_io_thread_num").range(2, 16).defaultTo(4));
    SAME.put("ior_entries", ConfigKey.integer("hf3fs_ior_entries").range(128, 1024).defaultTo(256));
    SAME.put("ior_depth", ConfigKey.integer("hf3fs_io_depth").range(-128, 128).defaultTo(0));
    SAME.put("numa_id", ConfigKey.integer("hf3fs_numa_id").range(-1, 1023).defaultTo(-1));
    SAME.put(
        "iov_size",
        ConfigKey.longInteger("hf3fs_iov_size").range(100 * MIB, 2048 * MIB).defaultTo(200 * MIB));
  }

  private static final String NO_DISK = "Cache|Ds3fs has no stage for local disks in between";
  private static final Map<String, String> WHY =
      Map.of(
          "chunk_size",
          "a block of UCM has the tokens of the engine's, and what LMCache stored is not read",
          "local_cpu",
          "the Cache stage always keeps blocks in host memory, so it needs no switch",
          "local_disk",
          NO_DISK,
          "max_local_disk_size",
          NO_DISK,
          "remote_serde",
          "blocks are stored as the engine has them");

  private final Ds3fsDraft draft;
  private final Map<String, Setting> settings = new LinkedHashMap<>();
  private final Set<String> used = new HashSet<>();
  private final StoreConfig config;
  private final ConfigOrigin root;

  LmcacheSettings(YamlMap file, Ds3fsDraft draft) {
    this.draft = draft;
    this.root = ConfigOrigin.of(file.at().source());
    for (Entry entry : file.entries()) {
      YamlNode value = entry.value();
      if (!entry.key().equals(EXTRA)) {
        Setting.flatten("", entry, settings, draft.findings);
      } else if (value instanceof YamlMap map) {
        map.entries().forEach(extra -> Setting.flatten("", extra, settings, draft.findings));
      } else {
        draft.error(value.at(), EXTRA, "is a map of keys; found " + value.kind());
      }
    }
    config = Setting.view(settings);
  }

  /** Writes what there is into the draft, with what is wrong. */
  void convert() {
    draft.comment("Made for LMCache's hf3fs backend. Blocks that LMCache stored are not read.");
    List<String> paths = directories();
    Optional<String> mount = find(MOUNT_POINT);
    mount.ifPresent(point -> checkMount(point, paths));
    draft.set("storage_backends", paths);
    double gib = get(CPU_SIZE);
    draft.set(
        "cache_buffer_capacity_gb",
        gib,
        "Host memory of each worker: LMCache's max_local_cpu_size"
            + (config.isSet(CPU_SIZE) ? "." : ", 5 unless set."));
    if (gib == 0 && config.isSet(CPU_SIZE)) {
      config.reject(CPU_SIZE, "is 0; the Cache stage needs room for at least one block: raise it");
    }
    SAME.forEach((ours, theirs) -> draft.set(ours, get(theirs)));
    mount.ifPresent(point -> draft.set(MOUNT_POINT.name(), point));
    find(BLOCKING_TIMEOUT)
        .ifPresent(
            seconds ->
                draft.set(
                    "timeout_ms",
                    Math.round(seconds * 1000),
                    "LMCache's blocking_timeout_secs; here for each task, also those in between."));
    find(LAYERWISE).ifPresent(flag -> draft.setTopLevel(LAYERWISE.name(), flag));
    draft.findings.addAll(config.problems());
    for (Setting setting : settings.values()) {
      if (used.add(setting.key())) {
        String otherwise = setting.isEmpty() ? "it has no value" : "UCM has no counterpart for it";
        leftOut(setting.key(), WHY.getOrDefault(setting.key(), otherwise));
      }
    }
  }

  /** The directories of the one backend that is taken over. */
  private List<String> directories() {
    List<String> plugins = plugins();
    Setting url = settings.get(URL);
    Optional<String> ours =
        plugins.stream()
            .filter(name -> name.equals("hf3fs") || name.startsWith("hf3fs."))
            .findFirst();
    if (ours.isEmpty() && url != null && url.raw() != null) {
      return ofUrl(String.valueOf(url.raw()), url.valueAt());
    }
    if (ours.isEmpty()) {
      draft.error(
          root,
          "",
          "keeps nothing in 3FS: neither remote_storage_plugins names a backend hf3fs, as in"
              + " [\"hf3fs.primary\"], nor is remote_url hf3fs:///a/directory"
              + (plugins.isEmpty() ? "" : "; found the plugins " + String.join(", ", plugins)));
      return List.of();
    }
    String plugin = ours.get();
    for (String other : plugins) {
      if (!other.equals(plugin)) {
        draft.leftOut(at(PLUGINS), other, "a pipeline has one storage stage; " + plugin + " is it");
      }
    }
    if (url != null && url.raw() != null) {
      leftOut(URL, "remote_storage_plugins names " + plugin);
    }
    return ofPlugin("remote_storage_plugin." + plugin + ".base_path");
  }

  private List<String> plugins() {
    Setting setting = settings.get(PLUGINS);
    used.add(PLUGINS);
    if (setting == null || setting.isEmpty()) {
      return List.of();
    }
    List<?> names =
        switch (setting.raw()) {
          case List<?> list -> list;
          case String text -> List.of(text.split(",", -1));
          case null, default -> {
            draft.error(
                setting.valueAt(), PLUGINS, "is a list of names such as [\"hf3fs.primary\"]");
            yield List.of();
          }
        };
    return names.stream().map(name -> String.valueOf(name).strip()).toList();
  }

  private List<String> ofPlugin(String own) {
    ConfigKey<String> key = ConfigKey.text(own);
    if (config.isSet(key) && config.isSet(BASE_PATH)) {
      leftOut(BASE_PATH.name(), own + " is set");
    }
    ConfigKey<String> from = config.isSet(key) ? key : BASE_PATH;
    if (config.isSet(from)) {
      return split(get(from), from.name(), config.origin(from));
    }
    draft.error(
        root,
        own,
        "is required in extra_config and not set, nor is hf3fs_base_path: the directories in 3FS,"
            + " joined by commas");
    return List.of();
  }

  private List<String> ofUrl(String url, ConfigOrigin at) {
    used.add(URL);
    if (!url.startsWith(SCHEME)) {
      draft.error(
          at, URL, "is \"" + url + "\"; only hf3fs:///a/directory, with more after commas, is 3FS");
      return List.of();
    }
    return split(url.substring(SCHEME.length()), URL, at);
  }

  /** Paths joined by commas; blanks around them do not count. */
  private List<String> split(String text, String key, ConfigOrigin at) {
    List<String> paths = new ArrayList<>();
    for (String part : text.split(",", -1)) {
      String path = part.strip();
      if (!path.startsWith("/")) {
        draft.error(
            at,
            key,
            "names \"%s\"; a directory in 3FS is an absolute path, such as /3fs/kv"
                .formatted(path));
      } else if (paths.contains(path)) {
        draft.error(at, key, "names " + path + " twice; keep it once");
      } else {
        paths.add(path);
      }
    }
    return paths;
  }

  private void checkMount(String mount, List<String> paths) {
    String below = mount.endsWith("/") ? mount : mount + "/";
    for (String path : paths) {
      if (!mount.isEmpty() && !path.equals(mount) && !path.startsWith(below)) {
        config.reject(
            MOUNT_POINT,
            "is %s, and %s is not below it: correct one of them".formatted(mount, path));
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

  private void leftOut(String key, String why) {
    used.add(key);
    draft.leftOut(at(key), key, why);
  }

  private ConfigOrigin at(String key) {
    Setting setting = settings.get(key);
    return setting == null ? root : setting.keyAt();
  }
}
