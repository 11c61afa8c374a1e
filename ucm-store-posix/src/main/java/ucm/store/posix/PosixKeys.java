package ucm.store.posix;

import java.util.List;
import ucm.api.CommonKeys;
import ucm.api.ConfigKey;

/** The configuration keys of the store {@code Posix}, those of the original and its own. */
final class PosixKeys {

  static final ConfigKey<String> IO_ENGINE =
      ConfigKey.choice("posix_io_engine", "psync", "aio")
          .defaultTo("psync")
          .doc(
              "How files are read and written: psync makes vectored calls on worker threads; aio is"
                  + " not part of this version.");

  static final ConfigKey<Integer> DATA_TRANS_CONCURRENCY =
      ConfigKey.integer("posix_data_trans_concurrency")
          .range(1, 1024)
          .defaultTo(128)
          .unit("threads")
          .doc("Most threads of psync; fewer are started when the machine has few processors.");

  static final ConfigKey<Integer> LOOKUP_CONCURRENCY =
      ConfigKey.integer("posix_lookup_concurrency")
          .range(1, 1024)
          .defaultTo(16)
          .unit("threads")
          .doc("Most threads of one look-up; this version looks up on the caller's thread.");

  static final ConfigKey<Integer> OPEN_CONCURRENCY =
      ConfigKey.integer("posix_open_concurrency")
          .range(1, 1024)
          .defaultTo(32)
          .unit("threads")
          .doc("Threads that open files for aio.");

  static final ConfigKey<Integer> COMMIT_CONCURRENCY =
      ConfigKey.integer("posix_commit_concurrency")
          .range(1, 1024)
          .defaultTo(4)
          .unit("threads")
          .doc("Threads that commit files for aio.");

  static final ConfigKey<Integer> DATA_DIR_SHARD_BYTES =
      ConfigKey.integer("data_dir_shard_bytes")
          .range(0, 5)
          .defaultTo(3)
          .unit("hexadecimal digits")
          .doc(
              "How many digits of a block's id name its folder; 0 puts all blocks into one folder"
                  + " named data. Must stay the same for the life of a directory.");

  static final ConfigKey<String> DURABILITY =
      ConfigKey.choice("durability", "none", "fdatasync", "full")
          .defaultTo("none")
          .doc(
              "What is waited for before a block becomes visible: none leaves it to the kernel, so"
                  + " that after a power loss blocks may be missing, never wrong; fdatasync waits"
                  + " for the block's bytes; full also for its entry in the folder.");

  static final ConfigKey<String> VERIFY =
      ConfigKey.choice("verify", "full", "sample", "off")
          .defaultTo("full")
          .doc(
              "Whether the checksum of each loaded shard is compared: of all, of one block in 16,"
                  + " or of none. Size and footer of a file are checked always.");

  static final ConfigKey<Double> CAPACITY_GB =
      ConfigKey.number("posix_capacity_gb")
          .atLeast(0)
          .defaultTo(0.0)
          .unit("GB")
          .doc("Most space the blocks may take; 0 is without limit. Not enforced by this version.");

  static final ConfigKey<Boolean> GC_ENABLE =
      ConfigKey.flag("posix_gc_enable")
          .defaultTo(true)
          .doc("Remove the coldest blocks when posix_capacity_gb is nearly used.");

  static final ConfigKey<Double> GC_TRIGGER_THRESHOLD_RATIO =
      ConfigKey.number("posix_gc_trigger_threshold_ratio")
          .range(0, 1)
          .defaultTo(0.7)
          .unit("share of the capacity")
          .doc("How full the store is when blocks begin to be removed.");

  static final ConfigKey<Double> GC_RECYCLE_PERCENT =
      ConfigKey.number("posix_gc_recycle_percent")
          .range(0, 1)
          .defaultTo(0.1)
          .unit("share of the blocks")
          .doc("How much is removed at once.");

  static final ConfigKey<Integer> GC_CHECK_INTERVAL_SEC =
      ConfigKey.integer("posix_gc_check_interval_sec")
          .range(1, 86_400)
          .defaultTo(30)
          .unit("s")
          .doc("How often the used space is looked at.");

  static final ConfigKey<Integer> GC_CONCURRENCY =
      ConfigKey.integer("posix_gc_concurrency")
          .range(1, 1024)
          .defaultTo(16)
          .unit("threads")
          .doc("Threads that look for cold blocks.");

  static final ConfigKey<Integer> GC_MAX_RECYCLE_COUNT_PER_SHARD =
      ConfigKey.integer("posix_gc_max_recycle_count_per_shard")
          .range(1, 1 << 30)
          .defaultTo(50_000)
          .unit("blocks")
          .doc("Most blocks removed from one folder at once.");

  static final ConfigKey<Double> GC_SHARD_SAMPLE_RATIO =
      ConfigKey.number("posix_gc_shard_sample_ratio")
          .range(0, 1)
          .defaultTo(0.1)
          .unit("share of the folders")
          .doc("How many folders are looked at to estimate the used space.");

  static final ConfigKey<Boolean> GC_PRECISE_MODE =
      ConfigKey.flag("posix_gc_precise_mode")
          .defaultTo(true)
          .doc("Remove the coldest blocks of all, rather than the coldest of each folder.");

  static final ConfigKey<Boolean> HEALTH_ENABLED =
      ConfigKey.flag("store_health.enabled")
          .defaultTo(true)
          .doc(
              "Stop using a directory of storage_backends that fails or hangs, until it works"
                  + " again: its blocks are absent meanwhile, loads and dumps of them are refused,"
                  + " and the other directories go on. A full or read-only directory is still"
                  + " read.");

  static final ConfigKey<Integer> HEALTH_CHECK_INTERVAL_S =
      ConfigKey.integer("store_health.health_check_interval_s")
          .range(1, 86_400)
          .defaultTo(10)
          .unit("s")
          .doc(
              "How often each directory is probed: a file of 4 KiB is written, synced, read back"
                  + " and removed; with the scheduler role, the directory is only looked at.");

  static final ConfigKey<Integer> HEALTH_CHECK_TIMEOUT_S =
      ConfigKey.integer("store_health.health_check_timeout_s")
          .range(1, 86_400)
          .defaultTo(3)
          .unit("s")
          .doc(
              "How long a probe, a look-up of one block, or the move of a block or of 4 MiB of it"
                  + " may take before it counts as failed.");

  static final ConfigKey<Integer> HEALTH_WINDOW_SIZE =
      ConfigKey.integer("store_health.health_window_size")
          .range(1, 1024)
          .defaultTo(8)
          .unit("results")
          .doc("How many of the last results, of probes and of work, are looked at.");

  static final ConfigKey<Integer> HEALTH_FAILURE_THRESHOLD =
      ConfigKey.integer("store_health.failure_threshold")
          .range(1, 1024)
          .defaultTo(2)
          .unit("results")
          .doc(
              "How many of them must have failed for the directory to be given up for now; at most"
                  + " health_window_size.");

  /** Accepted, so that a file of the original stays good, but without effect yet. */
  static final List<ConfigKey<?>> WITHOUT_EFFECT =
      List.of(
          LOOKUP_CONCURRENCY,
          OPEN_CONCURRENCY,
          COMMIT_CONCURRENCY,
          GC_ENABLE,
          GC_TRIGGER_THRESHOLD_RATIO,
          GC_RECYCLE_PERCENT,
          GC_CHECK_INTERVAL_SEC,
          GC_CONCURRENCY,
          GC_MAX_RECYCLE_COUNT_PER_SHARD,
          GC_SHARD_SAMPLE_RATIO,
          GC_PRECISE_MODE);

  /** All keys the store reads. */
  static final List<ConfigKey<?>> ALL =
      List.of(
          CommonKeys.STORAGE_BACKENDS,
          CommonKeys.DEVICE_ID,
          CommonKeys.TENSOR_SIZE,
          CommonKeys.TENSOR_SIZE_LIST,
          CommonKeys.SHARD_SIZE,
          CommonKeys.BLOCK_SIZE,
          CommonKeys.IO_DIRECT,
          CommonKeys.TIMEOUT_MS,
          CommonKeys.WAITING_QUEUE_DEPTH,
          CommonKeys.RUNNING_QUEUE_DEPTH,
          IO_ENGINE,
          DATA_TRANS_CONCURRENCY,
          LOOKUP_CONCURRENCY,
          OPEN_CONCURRENCY,
          COMMIT_CONCURRENCY,
          DATA_DIR_SHARD_BYTES,
          DURABILITY,
          VERIFY,
          CAPACITY_GB,
          GC_ENABLE,
          GC_TRIGGER_THRESHOLD_RATIO,
          GC_RECYCLE_PERCENT,
          GC_CHECK_INTERVAL_SEC,
          GC_CONCURRENCY,
          GC_MAX_RECYCLE_COUNT_PER_SHARD,
          GC_SHARD_SAMPLE_RATIO,
          GC_PRECISE_MODE,
          HEALTH_ENABLED,
          HEALTH_CHECK_INTERVAL_S,
          HEALTH_CHECK_TIMEOUT_S,
          HEALTH_WINDOW_SIZE,
          HEALTH_FAILURE_THRESHOLD);

  private PosixKeys() {}
}
