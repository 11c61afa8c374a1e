package ucm.store.nfs;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.device.EngineDevice;

/**
 * What the store {@code Nfs} is told beside what a store of files is told, parsed and checked. See {@link
 * NfsKeys} for what each value means.
 *
 * @param slots buffers of one shard
 */
record NfsConfig(
    BlockLayout layout,
    int deviceId,
    String device,
    int streams,
    List<Long> cores,
    int slots,
    int timeoutMs,
    int waitingQueueDepth,
    int runningQueueDepth) {

  // More streams than this do not make a bus faster.
  private static final int MOST_DEVICE_STREAMS = 32;
  private static final double GB = 1L << 30;

  /**
   * The configuration as a store of files knows it. Faults of what has another name there are recorded
   * in {@code config}.
   */
  static StoreConfig ofFiles(StoreConfig config) {
    Map<String, StoreConfig.Value> more = new LinkedHashMap<>();
    // The tree has one folder for that store; see NfsTree.
    more.put("data_dir_shard_bytes", new StoreConfig.Value(0L, config.origin(NfsKeys.STREAMS)));
    put(more, config, NfsKeys.STREAMS, "nfs_data_trans_concurrency", config.get(NfsKeys.STREAMS));
    config
        .find(NfsKeys.STORAGE_CAPACITY)
        .ifPresent(
            bytes -> put(more, config, NfsKeys.STORAGE_CAPACITY, "nfs_capacity_gb", bytes / GB));
    config
        .find(NfsKeys.RECYCLE_ENABLE)
        .ifPresent(on -> put(more, config, NfsKeys.RECYCLE_ENABLE, "nfs_gc_enable", on));
    config
        .find(NfsKeys.RECYCLE_THRESHOLD_RATIO)
        .ifPresent(
            ratio ->
                put(
                    more,
                    config,
                    NfsKeys.RECYCLE_THRESHOLD_RATIO,
                    "nfs_gc_trigger_threshold_ratio",
                    ratio));
    config
        .find(NfsKeys.IO_DIRECT)
        .ifPresent(on -> put(more, config, NfsKeys.IO_DIRECT, NfsKeys.IO_DIRECT.name(), on));
    config
        .find(NfsKeys.BLOCK_SIZE)
        .ifPresent(
            bytes -> put(more, config, NfsKeys.BLOCK_SIZE, NfsKeys.BLOCK_SIZE.name(), bytes));
    return config.with(more);
  }

  private static void put(
      Map<String, StoreConfig.Value> more,
      StoreConfig config,
      ConfigKey<?> from,
      String name,
      Object value) {
    more.put(name, new StoreConfig.Value(value, config.origin(from)));
  }

  /**
   * Reads and checks the keys that a store of files does not have.
   *
   * @param config from {@link #ofFiles}
   * @return the configuration; nothing when an error was recorded
   */
  static Optional<NfsConfig> from(StoreConfig config) {
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    int buffers = config.get(NfsKeys.BUFFER_NUMBER);
    Optional<Long> ioSize = config.find(NfsKeys.IO_SIZE);
    String device = config.get(NfsKeys.DEVICE);
    int streams = Math.min(config.get(NfsKeys.STREAMS), MOST_DEVICE_STREAMS);
    int slots = 0;
    if (layout.isPresent()) {
      long shard = layout.get().shardSize();
      double bytes = (double) buffers * ioSize.orElse(shard);
      long stride = StagingBuffers.stride(shard);
      slots = ioSize.isEmpty() ? buffers : (int) Math.min(bytes / stride, Integer.MAX_VALUE);
      if (slots == 0) {
        config.reject(
            NfsKeys.IO_SIZE,
            "times buffer_number is "
                + (long) bytes
                + " bytes, in which no shard fits, which takes "
                + stride
                + ": leave io_size out, or raise buffer_number");
      }
    }
    int deviceId = config.get(CommonKeys.DEVICE_ID);
    List<Long> cores = config.get(CommonKeys.CPU_AFFINITY_CORES);
    int timeoutMs = config.get(CommonKeys.TIMEOUT_MS);
    int waiting = config.get(CommonKeys.WAITING_QUEUE_DEPTH);
    int running = config.get(CommonKeys.RUNNING_QUEUE_DEPTH);
    if (config.hasErrors() || layout.isEmpty()) {
      return Optional.empty();
    }
    return Optional.of(
        new NfsConfig(
            layout.get(), deviceId, device, streams, cores, slots, timeoutMs, waiting, running));
  }

  /** Whether the store only answers look-ups. */
  boolean isScheduler() {
    return deviceId < 0;
  }

  /** Bytes from one buffer to the next. */
  long stride() {
    return StagingBuffers.stride(layout.shardSize());
  }

  /** The deadline of a task. */
  long timeoutNanos() {
    return TimeUnit.MILLISECONDS.toNanos(timeoutMs);
  }

  /** The device that the engine may name memory of. */
  EngineDevice.Choice engineDevice() {
    return new EngineDevice.Choice(
        NfsStore.NAME, NfsKeys.DEVICE.name(), device, deviceId, streams, cores);
  }
}
