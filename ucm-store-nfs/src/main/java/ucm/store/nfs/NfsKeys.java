package ucm.store.nfs;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;

/**
 * The configuration keys of the store {@code Nfs}: those of a store of files, and the original's names for
 * some of them.
 */
final class NfsKeys {

  static final ConfigKey<Long> BLOCK_SIZE = CommonKeys.BLOCK_SIZE.alias("kv_block_size");

  static final ConfigKey<Boolean> IO_DIRECT = CommonKeys.IO_DIRECT.alias("use_direct");

  static final ConfigKey<Integer> STREAMS =
      ConfigKey.integer("transferStreamNumber")
          .range(1, 1024)
          .defaultTo(32)
          .unit("threads")
          .alias("stream_number")
          .doc(
              "Most threads that read and write files at once; and, where the engine's memory is a"
                  + " GPU's, up to 32 streams of copies for each direction. 16 or 32 is a good"
                  + " value.");

  static final ConfigKey<Integer> BUFFER_NUMBER =
      ConfigKey.integer("buffer_number")
          .range(4, 1 << 20)
          .defaultTo(512)
          .unit("buffers")
          .doc(
              "How many buffers of io_size bytes lie between a GPU and the files. They are"
                  + " allocated, pinned, only where a GPU is used: host memory needs none.");

  static final ConfigKey<Long> IO_SIZE =
      ConfigKey.longInteger("io_size")
          .atLeast(1)
          .unit("bytes")
          .defaultDescribed("shard_size")
          .doc(
              "Size of each of these buffers. Buffers that are smaller than a shard are put"
                  + " together, so what counts is buffer_number times io_size.");

  static final ConfigKey<String> DEVICE =
      ConfigKey.choice("nfs_device", "auto", "host", "cuda")
          .defaultTo("auto")
          .doc(
              "Whose memory the engine may name beside host memory: auto uses the GPU device_id"
                  + " where there is one, cuda needs it, host does without.");

  static final ConfigKey<Long> STORAGE_CAPACITY =
      ConfigKey.longInteger("storage_capacity")
          .atLeast(0)
          .unit("bytes")
          .defaultDescribed("nfs_capacity_gb")
          .doc("The original's name for nfs_capacity_gb, in bytes.");

  static final ConfigKey<Boolean> RECYCLE_ENABLE =
      ConfigKey.flag("recycle_enable")
          .defaultDescribed("nfs_gc_enable")
          .doc("The original's name for nfs_gc_enable.");

  static final ConfigKey<Double> RECYCLE_THRESHOLD_RATIO =
      ConfigKey.number("recycle_threshold_ratio")
          .range(0.01, 1)
          .defaultDescribed("nfs_gc_trigger_threshold_ratio")
          .doc("The original's name for nfs_gc_trigger_threshold_ratio.");

  /** Keys of a store of files, by name, that are not this store's: it says them by others. */
  private static final Set<String> HIDDEN =
      Set.of("data_dir_shard_bytes", "nfs_data_trans_concurrency");

  private static final Map<String, ConfigKey<?>> RENAMED =
      Map.of(BLOCK_SIZE.name(), BLOCK_SIZE, IO_DIRECT.name(), IO_DIRECT);

  private static final List<ConfigKey<?>> OWN =
      List.of(
          STREAMS,
          BUFFER_NUMBER,
          IO_SIZE,
          DEVICE,
          STORAGE_CAPACITY,
          RECYCLE_ENABLE,
          RECYCLE_THRESHOLD_RATIO);

  private NfsKeys() {}

  /**
   * All keys.
   *
   * @param ofFiles those of a store of files
   */
  static List<ConfigKey<?>> all(List<ConfigKey<?>> ofFiles) {
    List<ConfigKey<?>> all = new ArrayList<>();
    for (ConfigKey<?> key : ofFiles) {
      if (!HIDDEN.contains(key.name())) {
        all.add(RENAMED.getOrDefault(key.name(), key));
      }
    }
    all.addAll(OWN);
    return List.copyOf(all);
  }
}
