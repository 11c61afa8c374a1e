package ucm.store.posix;

import java.util.List;
import ucm.api.CommonKeys;
import ucm.api.ConfigKey;

/** The configuration keys of the store {@code Posix}, those of the original and its own. */
final class PosixKeys {

  static final ConfigKey<String> IO_ENGINE =
      ConfigKey.choice("posix_io_engine", "psync", "aio", "io_uring")
          .defaultTo("psync")
          .doc(
              "How files are read and written: psync makes vectored calls on worker threads; aio"
                  + " and io_uring have the requests of a block under way side by side on each of"
                  + " them, and need io_direct: true and a kernel that allows them.");

  static final ConfigKey<Integer> DATA_TRANS_CONCURRENCY =
      ConfigKey.integer("posix_data_trans_concurrency")
          .range(1, 1024)
          .defaultTo(128)
          .unit("threads")
          .doc(
              "Most threads that move data. One per processor does while the page cache keeps up;"
                  + " more are started while they wait for the file system.");

  static final ConfigKey<Integer> LOOKUP_CONCURRENCY =
      ConfigKey.integer("posix_lookup_concurrency")
          .range(1, 1024)
          .defaultTo(16)
          .unit("threads")
          .doc(
              "Most threads that ask the file system for blocks while their callers wait; one that"
                  + " answers within 0.1 ms is asked by no more than there are processors. What is"
                  + " not answered within timeout_ms counts as absent.");

  static final ConfigKey<String> LOOKUP_MODE =
      ConfigKey.choice("lookup_mode", "shared", "exclusive")
          .defaultTo("shared")
          .doc(
              "Who else writes to storage_backends. shared: other processes may, so a block that"
                  + " this one does not know is looked for on disk. exclusive: nobody does, so once"
                  + " the scan at the start is done it is absent without a look. In both, a block"
                  + " that somebody removed may be reported until it is loaded, which then is a"
                  + " miss.");

  static final ConfigKey<Integer> INDEX_MAX_BLOCKS =
      ConfigKey.integer("posix_index_max_blocks")
          .range(0, 1 << 30)
          .defaultTo(1 << 22)
          .unit("blocks")
          .doc(
              "How many blocks are kept in mind as present, 24 bytes each, outside the heap; memory"
                  + " is taken as it is used. A full index forgets one block for each that comes,"
                  + " and looks it up on disk again; lookup_mode exclusive then acts as shared. 0"
                  + " looks up everything on disk.");

  static final ConfigKey<Integer> OPEN_CONCURRENCY =
      ConfigKey.integer("posix_open_concurrency")
          .range(1, 1024)
          .defaultTo(32)
          .unit("threads")
          .doc(
              "How many files are opened or created at a time in each of storage_backends, whatever"
                  + " the engine; the threads that move data do it.");

  static final ConfigKey<Integer> COMMIT_CONCURRENCY =
      ConfigKey.integer("posix_commit_concurrency")
          .range(1, 1024)
          .defaultTo(4)
          .unit("threads")
          .doc(
              "How many blocks are committed at a time in each of storage_backends, whatever the"
                  + " engine: what durability waits for, and the rename that makes the block"
                  + " visible; the threads that move data do it. More helps where a sync takes"
                  + " long and the file system gathers several.");

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
          .unit("GiB")
          .doc(
              "Most space the files of all storage_backends together may take, each counted in"
                  + " whole units of 4 KiB; 0 is without limit, and nothing is removed. A block"
                  + " that would pass it is not written. What other processes write into the same"
                  + " directories is counted every posix_gc_check_interval_sec, and whenever this"
                  + " one has written a 32nd of the capacity.");

  static final ConfigKey<Double> MIN_FREE_GB =
      ConfigKey.number("posix_min_free_gb")
          .atLeast(0)
          .defaultTo(0.1)
          .unit("GiB")
          .doc(
              "What must stay free on the file system of each of storage_backends, whoever fills"
                  + " it, with posix_capacity_gb or without. A block that would leave less is not"
                  + " written; 0 turns that off.");

  static final ConfigKey<Boolean> GC_ENABLE =
      ConfigKey.flag("posix_gc_enable")
          .defaultTo(true)
          .doc(
              "Remove the blocks used longest ago when posix_capacity_gb is nearly used. Of the"
                  + " processes that share storage_backends, one at a time does it.");

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
          .unit("share of the used space")
          .doc(
              "How much is removed at once, if that leads below the threshold; else as much as is"
                  + " needed for that.");

  static final ConfigKey<Integer> GC_CHECK_INTERVAL_SEC =
      ConfigKey.integer("posix_gc_check_interval_sec")
          .range(1, 86_400)
          .defaultTo(30)
          .unit("s")
          .doc(
              "How often the used space is counted anew, and the times of last use are written to"
                  + " the files; a writer that passes the threshold does not wait for it.");

  static final ConfigKey<Integer> GC_CONCURRENCY =
      ConfigKey.integer("posix_gc_concurrency")
          .range(1, 1024)
          .defaultTo(16)
          .unit("threads")
          .doc("Most threads that read folders; fewer are started when there are few folders.");

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
          .doc(
              "Without posix_gc_precise_mode: how many folders, chosen at random, are read at a"
                  + " time until enough is removed.");

  static final ConfigKey<Boolean> GC_PRECISE_MODE =
      ConfigKey.flag("posix_gc_precise_mode")
          .defaultTo(true)
          .doc(
              "Remove the coldest blocks of all, for which the times of all files are read, rather"
                  + " than the coldest of some folders.");

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

  /** What is collected, and how; acted on when there is a capacity. */
  static final List<ConfigKey<?>> GC =
      List.of(
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
          CommonKeys.CPU_AFFINITY_CORES,
          CommonKeys.TIMEOUT_MS,
          CommonKeys.WAITING_QUEUE_DEPTH,
          CommonKeys.RUNNING_QUEUE_DEPTH,
          IO_ENGINE,
          DATA_TRANS_CONCURRENCY,
          LOOKUP_CONCURRENCY,
          LOOKUP_MODE,
          INDEX_MAX_BLOCKS,
          OPEN_CONCURRENCY,
          COMMIT_CONCURRENCY,
          DATA_DIR_SHARD_BYTES,
          DURABILITY,
          VERIFY,
          CAPACITY_GB,
          MIN_FREE_GB,
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
