package ucm.store.nfs;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.device.EngineDevice;
import ucm.platform.device.SlotMemory;

/**
 * What the store {@code Nfs} is told beside what a store of files is told: its keys, with the original's
 * names for some of a store of files, and their values, checked.
 *
 * @param device what the engine may name memory of
 * @param slots buffers of one shard
 */
record NfsConfig(BlockLayout layout, EngineDevice.Choice device, int slots) {

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

  private static final List<ConfigKey<?>> OWN =
      List.of(
          STREAMS,
          BUFFER_NUMBER,
          IO_SIZE,
          DEVICE,
          STORAGE_CAPACITY,
          RECYCLE_ENABLE,
          RECYCLE_THRESHOLD_RATIO);

  // Keys of a store of files that have other names here, and other aliases.
  private static final String FOLDERS_OF_FILES = "data_dir_shard_bytes";
  private static final String WORKERS_OF_FILES = "nfs_data_trans_concurrency";
  private static final Set<String> HIDDEN = Set.of(FOLDERS_OF_FILES, WORKERS_OF_FILES);
  private static final Map<String, ConfigKey<?>> RENAMED =
      Map.of(BLOCK_SIZE.name(), BLOCK_SIZE, IO_DIRECT.name(), IO_DIRECT);

  // More streams than this do not make a bus faster.
  private static final int MOST_DEVICE_STREAMS = 32;
  private static final double GB = 1L << 30;

  /**
   * All keys.
   *
   * @param ofFiles those of a store of files
   */
  static List<ConfigKey<?>> keys(List<ConfigKey<?>> ofFiles) {
    Stream<ConfigKey<?>> renamed =
        ofFiles.stream()
            .filter(key -> !HIDDEN.contains(key.name()))
            .map(key -> RENAMED.getOrDefault(key.name(), key));
    return Stream.concat(renamed, OWN.stream()).toList();
  }

  /**
   * The configuration as a store of files knows it. Faults of what has another name there are recorded
   * in {@code config}.
   */
  static StoreConfig ofFiles(StoreConfig config) {
    Map<String, StoreConfig.Value> more = new LinkedHashMap<>();
    // The tree has one folder for that store; see NfsTree.
    more.put(FOLDERS_OF_FILES, new StoreConfig.Value(0L, config.origin(STREAMS)));
    put(more, config, STREAMS, WORKERS_OF_FILES, Optional.of(config.get(STREAMS)));
    Optional<Double> capacity = config.find(STORAGE_CAPACITY).map(bytes -> bytes / GB);
    put(more, config, STORAGE_CAPACITY, "nfs_capacity_gb", capacity);
    put(more, config, RECYCLE_ENABLE, "nfs_gc_enable", config.find(RECYCLE_ENABLE));
    put(
        more,
        config,
        RECYCLE_THRESHOLD_RATIO,
        "nfs_gc_trigger_threshold_ratio",
        config.find(RECYCLE_THRESHOLD_RATIO));
    put(more, config, IO_DIRECT, IO_DIRECT.name(), config.find(IO_DIRECT));
    put(more, config, BLOCK_SIZE, BLOCK_SIZE.name(), config.find(BLOCK_SIZE));
    return config.with(more);
  }

  private static void put(
      Map<String, StoreConfig.Value> more,
      StoreConfig config,
      ConfigKey<?> from,
      String name,
      Optional<?> value) {
    value.ifPresent(
        it -> {
          more.put(name, new StoreConfig.Value(it, config.origin(from)));
          if (config.isSet(from)) {
            config.settle(name, it, config.origin(from));
          }
        });
  }

  /**
   * Reads and checks the keys that a store of files does not have.
   *
   * @param config from {@link #ofFiles}
   * @return the configuration; nothing when an error was recorded
   */
  static Optional<NfsConfig> from(StoreConfig config) {
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    int buffers = config.get(BUFFER_NUMBER);
    Optional<Long> ioSize = config.find(IO_SIZE);
    EngineDevice.Choice device =
        new EngineDevice.Choice(
            NfsStore.NAME,
            DEVICE.name(),
            config.get(DEVICE),
            config.get(CommonKeys.DEVICE_ID),
            Math.min(config.get(STREAMS), MOST_DEVICE_STREAMS),
            config.get(CommonKeys.CPU_AFFINITY_CORES));
    int slots = 0;
    if (layout.isPresent()) {
      long shard = layout.get().shardSize();
      double bytes = (double) buffers * ioSize.orElse(shard);
      long stride = SlotMemory.stride(shard);
      slots = ioSize.isEmpty() ? buffers : (int) Math.min(bytes / stride, Integer.MAX_VALUE);
      if (slots == 0) {
        config.reject(
            IO_SIZE,
            ("times buffer_number is %s bytes, in which no shard fits, which takes %s: leave"
                    + " io_size out, or raise buffer_number")
                .formatted((long) bytes, stride));
      }
    }
    return config.hasErrors() || layout.isEmpty()
        ? Optional.empty()
        : Optional.of(new NfsConfig(layout.get(), device, slots));
  }

  /** Bytes from one buffer to the next. */
  long stride() {
    return SlotMemory.stride(layout.shardSize());
  }
}
