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

  /** Words of a line are keys of the stage, or keys that do nothing for the reason; * stands for any end. */
  private static final String OF_STAGES =
      """
      Ds3fs: buffer_size ds3fs_library_path hf3fs_io_depth hf3fs_io_thread_num hf3fs_ior_entries
      Ds3fs: hf3fs_iov_size hf3fs_mount_point hf3fs_numa_id io_thread_num ior_depth ior_entries
      Ds3fs: iov_size numa_id stream_number
      Nfs: buffer_number io_size kv_block_size recycle_enable recycle_threshold_ratio
      Nfs: storage_capacity stream_number transferStreamNumber use_direct
      """;

  private static final String WITHOUT_USE =
      """
      an address space of the original's Cache store: gpu_kv_buffer_addrs gpu_kv_buffer_sizes
      a tuning switch of the original's Cache store: cache_load_exclusive_buffer_number
      a tuning switch of the original's Posix store: posix_gc_candidate_extra_percent
      a setting of the ASU accelerator: asu_* kv_ns_ids
      a setting of the Ascend delegator: delegator_*
      a setting of the Mooncake store: global_segment_size_gb local_hostname master_server_address
      a setting of the Mooncake store: metadata_server protocol replica_num share_buffer_capacity_gb
      a setting of the YuanRong store: yuanrong_*
      metrics are switched on by metrics_config_path: enable_metrics
      ranks are handled by the engine side: load_only_first_rank
      part of sparse attention: ucm_sparse_config wa_dump_block_wise
      blocks are stored as the engine has them, uncompressed: compress_ratio data_type
      blocks are stored as the engine has them, uncompressed: decompress_thread_num
      the copies of a task are always submitted together: cache_io_aggregation
      a copy engine of the Ascend accelerator: cache_sdma_direct
      store_health finds a folder that hangs, while blocks are removed too: posix_gc_task_timeout_ms
      the buffer is one piece of memory, allocated at the start: use_pmr pmr_config
      the level is that of serve_log_level, else of UC_LOGGER_LEVEL in the environment of ucm serve: log_level
      a measuring mode of the original: use_inference_duration_monitor
      a measuring mode of the original: inference_duration_monitor_fake_hit_ratio
      """;

  private static final Map<String, List<String>> STAGES = byKey(OF_STAGES);
  private static final Map<String, List<String>> IGNORED = byKey(WITHOUT_USE);

  /** Keys whose values an engine gives, so that a file alone may lack them. */
  private static final Set<String> FROM_ENGINE =
      Stream.concat(
              CommonKeys.LAYOUT_KEYS.stream(),
              Stream.of(CommonKeys.UNIQUE_ID, CommonKeys.DEVICE_ID, CommonKeys.LOCAL_RANK_SIZE))
          .map(ConfigKey::name)
          .collect(Collectors.toUnmodifiableSet());

  private KnownKeys() {}

  private static Map<String, List<String>> byKey(String table) {
    Map<String, List<String>> byKey = new TreeMap<>();
    for (String line : table.lines().toList()) {
      int colon = line.indexOf(':');
      for (String key : line.substring(colon + 1).strip().split(" ", -1)) {
        byKey.computeIfAbsent(key, k -> new ArrayList<>()).add(line.substring(0, colon));
      }
    }
    return byKey;
  }

  /** Whether the engine gives this value, to any pipeline, also to one whose stages do not need it. */
  static boolean isFromEngine(String key) {
    return FROM_ENGINE.contains(key);
  }

  /** The stages of the original that have this key; none when it is unknown. */
  static List<String> stagesOf(String key) {
    return STAGES.getOrDefault(key, List.of());
  }

  /** Why a key (without dots) does nothing here, or null when it is not one of those. */
  static @Nullable String whyIgnored(String key) {
    int first = key.indexOf('_');
    String pattern = first < 0 ? key : key.substring(0, first + 1) + "*";
    List<String> why = IGNORED.getOrDefault(key, IGNORED.get(pattern));
    return why == null ? null : why.getFirst();
  }

  /** Keys of stages, with their stages; sorted. */
  static Map<String, List<String>> ofStages() {
    return STAGES;
  }

  /** Ignored keys, groups as {@code asu_*}, with the reasons; sorted. */
  static Map<String, List<String>> ignored() {
    return IGNORED;
  }
}
