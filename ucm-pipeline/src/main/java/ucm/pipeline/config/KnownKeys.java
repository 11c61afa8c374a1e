package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;

/**
 * Keys of the original UCM that no store found here declares: those of stages that are not installed,
 * and those of features and devices that do not exist here. They are accepted, so that a file made
 * for the original works, and the user is told that they do nothing.
 *
 * <p>Source of the names: examples/ and ucm/store/ of the public repository
 * ModelEngine-Group/unified-cache-management, and the hf3fs settings of LMCache.
 */
final class KnownKeys {

  private static final Map<String, List<String>> STAGES = new TreeMap<>();
  private static final Map<String, String> IGNORED = new TreeMap<>();
  private static final Map<String, String> IGNORED_PREFIXES = new TreeMap<>();

  static {
    stage(
        "Ds3fs",
        "buffer_size",
        "ds3fs_library_path",
        "hf3fs_io_depth",
        "hf3fs_io_thread_num",
        "hf3fs_ior_entries",
        "hf3fs_iov_size",
        "hf3fs_mount_point",
        "hf3fs_numa_id",
        "io_thread_num",
        "ior_depth",
        "ior_entries",
        "iov_size",
        "numa_id",
        "stream_number");
    stage(
        "Nfs",
        "buffer_number",
        "io_size",
        "kv_block_size",
        "recycle_enable",
        "recycle_threshold_ratio",
        "storage_capacity",
        "stream_number",
        "transferStreamNumber",
        "use_direct");

    ignore("an address space of the original's Cache store", "gpu_kv_buffer_addrs");
    ignore("an address space of the original's Cache store", "gpu_kv_buffer_sizes");
    ignore("a tuning switch of the original's Cache store", "cache_load_backend_only");
    ignore("a tuning switch of the original's Cache store", "cache_load_exclusive_buffer_number");
    ignore("a tuning switch of the original's Posix store", "posix_gc_candidate_extra_percent");
    ignore("a setting of the ASU accelerator", "kv_ns_ids");
    for (String key :
        List.of(
            "global_segment_size_gb",
            "local_hostname",
            "master_server_address",
            "metadata_server",
            "protocol",
            "replica_num",
            "share_buffer_capacity_gb")) {
      ignore("a setting of the Mooncake store", key);
    }
    ignore("metrics are switched on by metrics_config_path", "enable_metrics");
    ignore("ranks are handled by the engine side", "load_only_first_rank");
    ignore("part of sparse attention", "ucm_sparse_config");
    ignore("part of sparse attention", "wa_dump_block_wise");
    ignore("a measuring mode of the original", "use_inference_duration_monitor");
    ignore("a measuring mode of the original", "inference_duration_monitor_fake_hit_ratio");
    IGNORED_PREFIXES.put("asu_", "a setting of the ASU accelerator");
    IGNORED_PREFIXES.put("delegator_", "a setting of the Ascend delegator");
    IGNORED_PREFIXES.put("yuanrong_", "a setting of the YuanRong store");
  }

  /** Keys whose values an engine gives, so that a file alone may lack them. */
  private static final Set<String> FROM_ENGINE =
      Stream.concat(
              CommonKeys.LAYOUT_KEYS.stream(),
              Stream.of(CommonKeys.UNIQUE_ID, CommonKeys.DEVICE_ID, CommonKeys.LOCAL_RANK_SIZE))
          .map(ConfigKey::name)
          .collect(Collectors.toUnmodifiableSet());

  private KnownKeys() {}

  private static void stage(String name, String... keys) {
    for (String key : keys) {
      STAGES.computeIfAbsent(key, k -> new ArrayList<>()).add(name);
    }
  }

  private static void ignore(String why, String key) {
    IGNORED.put(key, why);
  }

  /** Whether the engine gives this value, to any pipeline, also to one whose stages do not need it. */
  static boolean isFromEngine(String key) {
    return FROM_ENGINE.contains(key);
  }

  /** The stages of the original that have this key; none when it is unknown. */
  static List<String> stagesOf(String key) {
    return List.copyOf(STAGES.getOrDefault(key, List.of()));
  }

  /** Why a key (without dots) does nothing here, or null when it is not one of those. */
  static @Nullable String whyIgnored(String key) {
    String exact = IGNORED.get(key);
    if (exact != null) {
      return exact;
    }
    for (Map.Entry<String, String> prefix : IGNORED_PREFIXES.entrySet()) {
      if (key.startsWith(prefix.getKey())) {
        return prefix.getValue();
      }
    }
    return null;
  }

  /** Keys of stages, by name, with their stages. */
  static Map<String, List<String>> ofStages() {
    return Map.copyOf(STAGES);
  }

  /** Ignored keys, prefixes as {@code asu_*}, with the reasons; sorted. */
  static Map<String, String> ignored() {
    Map<String, String> all = new TreeMap<>(IGNORED);
    IGNORED_PREFIXES.forEach((prefix, why) -> all.put(prefix + "*", why));
    return all;
  }
}
