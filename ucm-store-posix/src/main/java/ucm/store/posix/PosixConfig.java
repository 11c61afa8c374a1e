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
    List<Long> cores,
    boolean ioDirect,
    Engine engine,
    int timeoutMs,
    int waitingQueueDepth,
    int runningQueueDepth,
    int dataTransConcurrency,
    int lookupConcurrency,
    int openConcurrency,
    int commitConcurrency,
    LookupMode lookupMode,
    int indexMaxBlocks,
    int folderDigits,
    Durability durability,
    Verify verify,
    double capacityGb,
    double minFreeGb,
    Gc gc,
    Health health) {

  /** How files are read and written. */
  enum Engine {
    PSYNC,
    AIO,
    IO_URING
  }

  /** Whom the index of known blocks is trusted against. */
  enum LookupMode {
    SHARED,
    EXCLUSIVE
  }

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
      boolean preciseMode) {

    /** Reads the keys; faults are recorded in {@code config}. */
    static Gc from(StoreConfig config) {
      return new Gc(
          config.get(PosixKeys.GC_ENABLE),
          config.get(PosixKeys.GC_TRIGGER_THRESHOLD_RATIO),
          config.get(PosixKeys.GC_RECYCLE_PERCENT),
          config.get(PosixKeys.GC_CHECK_INTERVAL_SEC),
          config.get(PosixKeys.GC_CONCURRENCY),
          config.get(PosixKeys.GC_MAX_RECYCLE_COUNT_PER_SHARD),
          config.get(PosixKeys.GC_SHARD_SAMPLE_RATIO),
          config.get(PosixKeys.GC_PRECISE_MODE));
    }

    /** The same, for somebody who says how much is to go: the coldest of all, however many. */
    Gc untilDone() {
      return new Gc(
          enable,
          triggerThresholdRatio,
          recyclePercent,
          checkIntervalSec,
          concurrency,
          Integer.MAX_VALUE,
          shardSampleRatio,
          true);
    }
  }

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

  /** Whether nobody else writes to the directories. */
  boolean isExclusive() {
    return lookupMode == LookupMode.EXCLUSIVE;
  }

  /**
   * Reads and checks all keys. Faults are recorded in {@code config}.
   *
   * @return the configuration; nothing when an error was recorded
   */
  static Optional<PosixConfig> from(StoreConfig config) {
    Optional<BlockLayout> layout = CommonKeys.layout(config);
    List<String> backends = backends(config);
    Engine engine = Engine.valueOf(constant(config.get(PosixKeys.IO_ENGINE)));
    if (engine != Engine.PSYNC && !config.get(CommonKeys.IO_DIRECT)) {
      config.reject(
          PosixKeys.IO_ENGINE,
          config.get(PosixKeys.IO_ENGINE)
              + " needs io_direct: true, since through the page cache it only costs more; set that,"
              + " or posix_io_engine: psync");
    }
    if (config.get(PosixKeys.CAPACITY_GB) == 0) {
      for (ConfigKey<?> key : PosixKeys.GC) {
        if (config.isSet(key)) {
          config.warn(key, "has no effect while posix_capacity_gb is 0");
        }
      }
    }
    Gc gc = Gc.from(config);
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
    List<Long> cores = config.get(CommonKeys.CPU_AFFINITY_CORES);
    boolean ioDirect = config.get(CommonKeys.IO_DIRECT);
    int timeoutMs = config.get(CommonKeys.TIMEOUT_MS);
    int waiting = config.get(CommonKeys.WAITING_QUEUE_DEPTH);
    int running = config.get(CommonKeys.RUNNING_QUEUE_DEPTH);
    int dataTrans = config.get(PosixKeys.DATA_TRANS_CONCURRENCY);
    int lookup = config.get(PosixKeys.LOOKUP_CONCURRENCY);
    int open = config.get(PosixKeys.OPEN_CONCURRENCY);
    int commit = config.get(PosixKeys.COMMIT_CONCURRENCY);
    LookupMode lookupMode = LookupMode.valueOf(constant(config.get(PosixKeys.LOOKUP_MODE)));
    int indexMaxBlocks = config.get(PosixKeys.INDEX_MAX_BLOCKS);
    if (lookupMode == LookupMode.EXCLUSIVE && indexMaxBlocks == 0) {
      config.reject(
          PosixKeys.INDEX_MAX_BLOCKS,
          "is 0, which lookup_mode exclusive cannot do without: leave it out, or set lookup_mode to"
              + " shared");
    }
    int folderDigits = config.get(PosixKeys.DATA_DIR_SHARD_BYTES);
    Durability durability = Durability.valueOf(constant(config.get(PosixKeys.DURABILITY)));
    Verify verify = Verify.valueOf(constant(config.get(PosixKeys.VERIFY)));
    double capacityGb = config.get(PosixKeys.CAPACITY_GB);
    double minFreeGb = config.get(PosixKeys.MIN_FREE_GB);
    if (config.hasErrors()) {
      return Optional.empty();
    }
    return layout.map(
        known ->
            new PosixConfig(
                backends,
                known,
                deviceId,
                cores,
                ioDirect,
                engine,
                timeoutMs,
                waiting,
                running,
                dataTrans,
                lookup,
                open,
                commit,
                lookupMode,
                indexMaxBlocks,
                folderDigits,
                durability,
                verify,
                capacityGb,
                minFreeGb,
                gc,
                health));
  }

  /** Reads the directories; faults are recorded in {@code config}. */
  static List<String> backends(StoreConfig config) {
    List<String> backends = config.get(CommonKeys.STORAGE_BACKENDS);
    Set<String> seen = new HashSet<>();
    for (String backend : backends) {
      if (!seen.add(backend)) {
        config.reject(CommonKeys.STORAGE_BACKENDS, "names " + backend + " twice; keep it once");
      }
    }
    return backends;
  }

  private static String constant(String word) {
    return word.toUpperCase(Locale.ROOT);
  }
}
