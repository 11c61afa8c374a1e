package ucm.store.file.config;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * The configuration of a store of files, parsed and checked. See {@link FileStoreKeys} for what each value
 * means.
 *
 * @param isExclusive whether no other process writes to the directories
 */
public record FileStoreConfig(
    StoreKind kind,
    List<String> directories,
    BlockLayout layout,
    int deviceId,
    List<Long> cores,
    boolean ioDirect,
    boolean usesAio,
    int timeoutMs,
    int waitingQueueDepth,
    int dataTransConcurrency,
    int lookupConcurrency,
    int openConcurrency,
    int commitConcurrency,
    boolean isExclusive,
    int indexMaxBlocks,
    int folderDigits,
    Durability durability,
    Verify verify,
    boolean acceptUnverified,
    double capacityGb,
    double minFreeGb,
    Gc gc,
    Health health) {

  // In place of one that is missing, so that all other keys are checked.
  private static final BlockLayout NO_LAYOUT = BlockLayout.uniform(1, 1, 1);

  /** What is waited for before a block becomes visible. */
  public enum Durability {
    NONE,
    FDATASYNC,
    FULL
  }

  /** Which checksums are compared at load. */
  public enum Verify {
    FULL,
    SAMPLE,
    OFF
  }

  /** How space is won back. */
  public record Gc(
      boolean enable,
      double triggerThresholdRatio,
      double recyclePercent,
      int checkIntervalSec,
      int concurrency) {

    /** Reads the keys; faults are recorded in {@code config}. */
    public static Gc from(FileStoreKeys keys, StoreConfig config) {
      return new Gc(
          config.get(keys.gcEnable),
          config.get(keys.gcTriggerThresholdRatio),
          config.get(keys.gcRecyclePercent),
          config.get(keys.gcCheckIntervalSec),
          config.get(keys.gcConcurrency));
    }
  }

  /**
   * How a failing volume is found.
   *
   * @param enabled false when none is
   * @param intervalNanos time between two probes
   * @param timeoutNanos how long a probe or an operation may take before it counts as failed
   * @param windowSize how many of the last results are counted
   * @param failureThreshold how many of them must have failed for it to be left alone
   */
  public record Health(
      boolean enabled,
      long intervalNanos,
      long timeoutNanos,
      int windowSize,
      int failureThreshold) {}

  /**
   * Whether the store notes when its blocks are used, instead of the file system: always where space is
   * kept; and where files are taken for local ones, as a note costs no round trip there.
   */
  public boolean notesUses() {
    return !isScheduler() && (capacityGb > 0 || kind.isLocal());
  }

  /** Whether the store only answers look-ups. */
  public boolean isScheduler() {
    return deviceId < 0;
  }

  /**
   * Reads and checks all keys. Faults are recorded in {@code config}.
   *
   * @return the configuration; nothing when an error was recorded
   */
  public static Optional<FileStoreConfig> from(StoreKind kind, StoreConfig config) {
    FileStoreKeys keys = kind.keys();
    FileStoreConfig read =
        new FileStoreConfig(
            kind,
            directories(config),
            CommonKeys.layout(config).orElse(NO_LAYOUT),
            config.get(CommonKeys.DEVICE_ID),
            config.get(CommonKeys.CPU_AFFINITY_CORES),
            config.get(CommonKeys.IO_DIRECT),
            !config.get(keys.ioEngine).equals("psync"),
            config.get(CommonKeys.TIMEOUT_MS),
            config.get(CommonKeys.WAITING_QUEUE_DEPTH),
            config.get(keys.dataTransConcurrency),
            config.get(keys.lookupConcurrency),
            config.get(keys.openConcurrency),
            config.get(keys.commitConcurrency),
            config.get(keys.lookupMode).equals("exclusive"),
            config.get(keys.indexMaxBlocks),
            config.get(keys.dataDirShardBytes),
            Durability.valueOf(constant(config.get(keys.durability))),
            Verify.valueOf(constant(config.get(keys.verify))),
            config.get(keys.acceptUnverified),
            config.get(keys.capacityGb),
            config.get(keys.minFreeGb),
            Gc.from(keys, config),
            new Health(
                config.get(keys.healthEnabled),
                TimeUnit.SECONDS.toNanos(config.get(keys.healthCheckIntervalS)),
                TimeUnit.SECONDS.toNanos(config.get(keys.healthCheckTimeoutS)),
                config.get(keys.healthWindowSize),
                config.get(keys.healthFailureThreshold)));
    read.check(keys, config);
    return config.hasErrors() ? Optional.empty() : Optional.of(read);
  }

  /** Checks what concerns several keys. */
  private void check(FileStoreKeys keys, StoreConfig config) {
    if (usesAio && !ioDirect) {
      config.reject(
          keys.ioEngine,
          ("%s needs io_direct: true, since through the page cache it only costs more; set that, or"
                  + " %s: psync")
              .formatted(config.get(keys.ioEngine), keys.ioEngine.name()));
    }
    if (config.get(keys.ioEngine).equals(FileStoreKeys.IO_URING)) {
      config.warn(keys.ioEngine, "runs as aio, which was measured equal: set that");
    }
    // What is set is still a value of its key.
    keys.sampledGc.forEach(config::get);
    keys.sampledGc.stream()
        .filter(config::isSet)
        .findFirst()
        .ifPresent(
            key ->
                config.warn(
                    key, "has no effect: the coldest blocks of all are removed; leave it out"));
    if (capacityGb == 0) {
      for (ConfigKey<?> key : keys.gc) {
        if (config.isSet(key)) {
          config.warn(key, "has no effect while " + keys.capacityGb.name() + " is 0");
        }
      }
    }
    if (health.failureThreshold > health.windowSize) {
      config.warn(
          keys.healthFailureThreshold,
          "is more than %s, which is used in its place: no more results than that are counted"
              .formatted(keys.healthWindowSize.name()));
    }
    if (isExclusive && indexMaxBlocks == 0) {
      config.reject(
          keys.indexMaxBlocks,
          "is 0, which lookup_mode exclusive cannot do without: leave it out, or set lookup_mode to"
              + " shared");
    }
  }

  /** Reads the directories; faults are recorded in {@code config}. */
  public static List<String> directories(StoreConfig config) {
    List<String> directories = config.get(CommonKeys.STORAGE_BACKENDS);
    Set<Path> seen = new HashSet<>();
    for (String directory : directories) {
      if (!seen.add(Path.of(directory).normalize())) {
        config.reject(CommonKeys.STORAGE_BACKENDS, "names " + directory + " twice; keep it once");
      }
    }
    return directories;
  }

  private static String constant(String word) {
    return word.toUpperCase(Locale.ROOT);
  }
}
