package ucm.store.posix;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.ConfigKey;
import ucm.api.StoreConfig;

/**
 * What the store {@code Posix} is told, parsed and checked. See {@link PosixKeys} for what each value
 * means.
 */
record PosixConfig(
    List<String> backends,
    BlockLayout layout,
    int deviceId,
    int timeoutMs,
    int waitingQueueDepth,
    int runningQueueDepth,
    int dataTransConcurrency,
    int lookupConcurrency,
    int openConcurrency,
    int commitConcurrency,
    int folderDigits,
    Durability durability,
    Verify verify,
    double capacityGb,
    Gc gc,
    Health health) {

  /** What is waited for before a block becomes visible. */
  enum Durability {
    NONE,
    FDATASYNC,
    FULL
  }

  /** Which checksums are compared at load. */
  enum Verify {
    FULL,
    SAMPLE,
    OFF
  }

  /** How space is won back. */
  record Gc(
      boolean enable,
      double triggerThresholdRatio,
      double recyclePercent,
      int checkIntervalSec,
      int concurrency,
      int maxRecycleCountPerShard,
      double shardSampleRatio,
      boolean preciseMode) {}

  /** How a failing medium is found. */
  record Health(
      boolean enabled,
      int checkIntervalS,
      int checkTimeoutS,
      int windowSize,
      int failureThreshold) {}

  /** Whether the store only answers look-ups. */
  boolean isScheduler() {
    return deviceId < 0;
  }

  /**
   * Reads and checks all keys. Faults are recorded in {@code config}.
   *
   * @return the configuration; nothing when an error was recorded
   */
  static Optional<PosixConfig> from(StoreConfig config) {
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    List<String> backends = config.get(CommonKeys.STORAGE_BACKENDS);
    Set<String> seen = new HashSet<>();
    for (String backend : backends) {
      if (!seen.add(backend)) {
        config.reject(CommonKeys.STORAGE_BACKENDS, "names " + backend + " twice; keep it once");
      }
    }
    if (config.get(PosixKeys.IO_ENGINE).equals("aio")) {
      config.reject(
          PosixKeys.IO_ENGINE, "aio is not part of this version; set psync, or leave the key out");
    }
    if (config.get(CommonKeys.IO_DIRECT)) {
      config.reject(
          CommonKeys.IO_DIRECT,
          "direct I/O is not part of this version of Posix; set false, or leave the key out");
    }
    if (config.get(PosixKeys.CAPACITY_GB) > 0) {
      config.warn(
          PosixKeys.CAPACITY_GB,
          "nothing is collected by this version: watch the free space of storage_backends");
    }
    for (ConfigKey<?> key : PosixKeys.WITHOUT_EFFECT) {
      if (config.isSet(key)) {
        config.warn(key, "has no effect in this version");
      }
    }
    Gc gc =
        new Gc(
            config.get(PosixKeys.GC_ENABLE),
            config.get(PosixKeys.GC_TRIGGER_THRESHOLD_RATIO),
            config.get(PosixKeys.GC_RECYCLE_PERCENT),
            config.get(PosixKeys.GC_CHECK_INTERVAL_SEC),
            config.get(PosixKeys.GC_CONCURRENCY),
            config.get(PosixKeys.GC_MAX_RECYCLE_COUNT_PER_SHARD),
            config.get(PosixKeys.GC_SHARD_SAMPLE_RATIO),
            config.get(PosixKeys.GC_PRECISE_MODE));
    if (config.get(PosixKeys.HEALTH_FAILURE_THRESHOLD) > config.get(PosixKeys.HEALTH_WINDOW_SIZE)) {
      config.warn(
          PosixKeys.HEALTH_FAILURE_THRESHOLD,
          "is more than "
              + PosixKeys.HEALTH_WINDOW_SIZE.name()
              + ", which is used in its place: no more results than that are looked at");
    }
    Health health =
        new Health(
            config.get(PosixKeys.HEALTH_ENABLED),
            config.get(PosixKeys.HEALTH_CHECK_INTERVAL_S),
            config.get(PosixKeys.HEALTH_CHECK_TIMEOUT_S),
            config.get(PosixKeys.HEALTH_WINDOW_SIZE),
            config.get(PosixKeys.HEALTH_FAILURE_THRESHOLD));
    int deviceId = config.get(CommonKeys.DEVICE_ID);
    int timeoutMs = config.get(CommonKeys.TIMEOUT_MS);
    int waiting = config.get(CommonKeys.WAITING_QUEUE_DEPTH);
    int running = config.get(CommonKeys.RUNNING_QUEUE_DEPTH);
    int dataTrans = config.get(PosixKeys.DATA_TRANS_CONCURRENCY);
    int lookup = config.get(PosixKeys.LOOKUP_CONCURRENCY);
    int open = config.get(PosixKeys.OPEN_CONCURRENCY);
    int commit = config.get(PosixKeys.COMMIT_CONCURRENCY);
    int folderDigits = config.get(PosixKeys.DATA_DIR_SHARD_BYTES);
    Durability durability = Durability.valueOf(constant(config.get(PosixKeys.DURABILITY)));
    Verify verify = Verify.valueOf(constant(config.get(PosixKeys.VERIFY)));
    double capacityGb = config.get(PosixKeys.CAPACITY_GB);
    if (config.hasErrors()) {
      return Optional.empty();
    }
    return layout.map(
        known ->
            new PosixConfig(
                backends,
                known,
                deviceId,
                timeoutMs,
                waiting,
                running,
                dataTrans,
                lookup,
                open,
                commit,
                folderDigits,
                durability,
                verify,
                capacityGb,
                gc,
                health));
  }

  private static String constant(String word) {
    return word.toUpperCase(Locale.ROOT);
  }
}
