package ucm.store.file.config;

import java.util.ArrayList;
import java.util.List;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;

/**
 * The configuration keys of a store of files, those of the original and its own. Those that only this
 * kind of store has begin with its prefix.
 */
public final class FileStoreKeys {

  static final String IO_URING = "io_uring";
  private static final String WITHOUT_EFFECT =
      "Accepted, and without effect: the coldest blocks of all are removed.";

  private static final List<ConfigKey<?>> COMMON =
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
          CommonKeys.RUNNING_QUEUE_DEPTH);

  private final StoreKind kind;
  private final List<ConfigKey<?>> keys = new ArrayList<>(COMMON);

  public final ConfigKey<String> ioEngine =
      add(
          ConfigKey.choice(key("io_engine"), "psync", "aio", IO_URING)
              .defaultTo("psync")
              .doc(
                  "How files are read and written: psync makes vectored calls on worker threads;"
                      + " aio has the requests of a block under way side by side on each of them,"
                      + " and needs io_direct: true and a kernel that allows it; io_uring runs as"
                      + " aio."));

  final ConfigKey<Integer> dataTransConcurrency =
      add(
          threads("data_trans_concurrency", 128)
              .doc(
                  "Most threads that move data. One per processor does while the page cache keeps"
                      + " up; more are started while they wait for the file system."));

  final ConfigKey<Integer> lookupConcurrency =
      add(
          threads("lookup_concurrency", 16)
              .doc(
                  "Most threads that ask the file system of each of storage_backends for blocks"
                      + " while their callers wait; a look-up begins with one, and more join the"
                      + " longer it takes. What is not answered within timeout_ms counts as"
                      + " absent."));

  final ConfigKey<String> lookupMode =
      add(
          ConfigKey.choice("lookup_mode", "shared", "exclusive")
              .defaultTo("shared")
              .doc(
                  "Who else writes to storage_backends. shared: other processes may, so a block"
                      + " that this one does not know is searched on disk. exclusive: no other"
                      + " does, so once the scan at the start is done it is absent without a check."
                      + " In both, a block that was removed may be reported until it is loaded,"
                      + " which then is a miss."));

  final ConfigKey<Integer> indexMaxBlocks =
      add(
          ConfigKey.integer(key("index_max_blocks"))
              .range(0, 1 << 30)
              .defaultTo(1 << 22)
              .unit("blocks")
              .doc(
                  "How many blocks are kept in mind as present, 27 to 46 bytes of heap each; memory"
                      + " is taken as it is used. A full index forgets one block for each that"
                      + " comes, and looks it up on disk again; lookup_mode exclusive then acts as"
                      + " shared. 0 looks up everything on disk."));

  final ConfigKey<Integer> openConcurrency =
      add(
          threads("open_concurrency", 32)
              .doc(
                  "How many files are opened or created at a time in each of storage_backends,"
                      + " whatever the engine; the threads that move data do it."));

  final ConfigKey<Integer> commitConcurrency =
      add(
          threads("commit_concurrency", 4)
              .doc(
                  "How many blocks are committed at a time in each of storage_backends, whatever"
                      + " the engine: what durability waits for, and the rename that makes the"
                      + " block visible; the threads that move data do it. More helps where a sync"
                      + " takes long and the file system gathers several."));

  final ConfigKey<Integer> dataDirShardBytes =
      add(
          ConfigKey.integer("data_dir_shard_bytes")
              .range(0, 5)
              .defaultTo(3)
              .unit("hexadecimal digits")
              .doc(
                  "How many digits of a block's id name its folder; 0 puts all blocks into one"
                      + " folder named data. Must stay the same for the life of a directory."));

  final ConfigKey<String> durability =
      add(
          ConfigKey.choice("durability", "none", "fdatasync", "full")
              .defaultTo("none")
              .doc(
                  "What is waited for before a block becomes visible: none leaves it to the kernel,"
                      + " so that after a power loss blocks may be missing, never wrong; fdatasync"
                      + " waits for the block's bytes; full also for its entry in the folder."));

  final ConfigKey<String> verify =
      add(
          ConfigKey.choice("verify", "full", "sample", "off")
              .defaultTo("full")
              .doc(
                  "Whether the checksum of each loaded shard is compared: of all, of one block in"
                      + " 16, or of none. Size and footer of a file are checked always."));

  final ConfigKey<Boolean> acceptUnverified =
      add(
          ConfigKey.flag("accept_unverified")
              .defaultTo(false)
              .doc(
                  "Whether a file without a footer, as the original writes them, is served when its"
                      + " size is exactly that of a block. Nothing tells whether its bytes are"
                      + " whole, or those of its block. With false it is a miss and left alone,"
                      + " until its block is stored again; ucm store adopt gives such files"
                      + " footers."));

  public final ConfigKey<Double> capacityGb =
      add(
          ConfigKey.number(key("capacity_gb"))
              .live()
              .atLeast(0)
              .defaultTo(0.0)
              .unit("GiB")
              .doc(
                  String.format(
                      "Most space the files of all storage_backends together may take, "
                          + "each counted in whole units of 4 KiB; 0 is without limit, and "
                          + "nothing is removed. A block that would pass it is not written. "
                          + "What other processes write into the same directories is counted "
                          + "every %s, and whenever this one has written a 32nd of the "
                          + "capacity.",
                      key("gc_check_interval_sec"))));

  public final ConfigKey<Double> minFreeGb =
      add(
          ConfigKey.number(key("min_free_gb"))
              .live()
              .atLeast(0)
              .defaultTo(0.1)
              .unit("GiB")
              .doc(
                  String.format(
                      "What must stay free on the file system of each of "
                          + "storage_backends, whatever fills it, with %s or without. A block "
                          + "that would leave less is not written; 0 turns that off.",
                      key("capacity_gb"))));

  final ConfigKey<Boolean> gcEnable =
      add(
          ConfigKey.flag(key("gc_enable"))
              .defaultTo(true)
              .doc(
                  String.format(
                      "Remove the blocks used longest ago when %s is nearly used. Of the "
                          + "processes that share storage_backends, one at a time does it.",
                      key("capacity_gb"))));

  final ConfigKey<Double> gcTriggerThresholdRatio =
      add(
          ConfigKey.number(key("gc_trigger_threshold_ratio"))
              .live()
              .range(0, 1)
              .defaultTo(0.98)
              .unit("share of the capacity")
              .doc(
                  "How full the store is when blocks begin to be removed, ahead of the writers. A"
                      + " writer that finds no room waits for that, half of timeout_ms at most; it"
                      + " is refused when nothing can be removed."));

  final ConfigKey<Double> gcRecyclePercent =
      add(
          ConfigKey.number(key("gc_recycle_percent"))
              .live()
              .range(0, 1)
              .defaultTo(0.03)
              .unit("share of the used space")
              .doc(
                  "How much is removed at once, if that leads below the threshold; else as much as"
                      + " is needed for that."));

  final ConfigKey<Integer> gcCheckIntervalSec =
      add(
          seconds(key("gc_check_interval_sec"), 30)
              .doc(
                  "How often the used space is counted again, and the times of last use are written"
                      + " to the files; a writer that passes the threshold does not wait for it."));

  final ConfigKey<Integer> gcConcurrency =
      add(
          threads("gc_concurrency", 16)
              .doc(
                  "Most threads that read folders; fewer are started when there are few folders."));

  /** Of the original's collection by samples of the folders; accepted, and without effect. */
  final List<ConfigKey<?>> sampledGc =
      List.of(
          add(
              ConfigKey.integer(key("gc_max_recycle_count_per_shard"))
                  .range(1, 1 << 30)
                  .defaultTo(50_000)
                  .unit("blocks")
                  .doc(WITHOUT_EFFECT)),
          add(
              ConfigKey.number(key("gc_shard_sample_ratio"))
                  .range(0, 1)
                  .defaultTo(0.1)
                  .unit("share of the folders")
                  .doc(WITHOUT_EFFECT)),
          add(ConfigKey.flag(key("gc_precise_mode")).defaultTo(true).doc(WITHOUT_EFFECT)));

  final ConfigKey<Boolean> healthEnabled =
      add(
          ConfigKey.flag("store_health.enabled")
              .defaultTo(true)
              .doc(
                  "Stop using a directory of storage_backends that fails or hangs, until it works"
                      + " again: its blocks are absent meanwhile, loads and dumps of them are"
                      + " refused, and the other directories go on. A full or read-only directory"
                      + " is still read."));

  final ConfigKey<Integer> healthCheckIntervalS =
      add(
          seconds("store_health.health_check_interval_s", 10)
              .doc(
                  "How often each directory is probed: a file of 4 KiB is written, synced, read"
                      + " back and removed; with the scheduler role, the directory is only"
                      + " checked."));

  final ConfigKey<Integer> healthCheckTimeoutS =
      add(
          seconds("store_health.health_check_timeout_s", 3)
              .doc(
                  "How long a probe, a look-up of one block, or the move of a block or of 4 MiB of"
                      + " it may take before it counts as failed."));

  final ConfigKey<Integer> healthWindowSize =
      add(
          results("store_health.health_window_size", 8)
              .doc("How many of the last results, of probes and of work, are counted."));

  final ConfigKey<Integer> healthFailureThreshold =
      add(
          results("store_health.failure_threshold", 2)
              .doc(
                  "How many of them must have failed for the directory to be given up for now; at"
                      + " most health_window_size."));

  /** What is collected, and how; acted on when there is a capacity. */
  final List<ConfigKey<?>> gc =
      List.of(
          gcEnable, gcTriggerThresholdRatio, gcRecyclePercent, gcCheckIntervalSec, gcConcurrency);

  FileStoreKeys(StoreKind kind) {
    // First, as the names of the keys begin with it.
    this.kind = kind;
    super();
  }

  private String key(String rest) {
    return kind.key(rest);
  }

  private ConfigKey<Integer> threads(String rest, int fallback) {
    return ConfigKey.integer(key(rest)).range(1, 1024).defaultTo(fallback).unit("threads");
  }

  private static ConfigKey<Integer> seconds(String name, int fallback) {
    return ConfigKey.integer(name).range(1, 86_400).defaultTo(fallback).unit("s");
  }

  private static ConfigKey<Integer> results(String name, int fallback) {
    return ConfigKey.integer(name).range(1, 1024).defaultTo(fallback).unit("results");
  }

  private <T> ConfigKey<T> add(ConfigKey<T> key) {
    keys.add(key);
    return key;
  }

  /** All keys the store reads, in the order of the reference. */
  public List<ConfigKey<?>> all() {
    return List.copyOf(keys);
  }
}
