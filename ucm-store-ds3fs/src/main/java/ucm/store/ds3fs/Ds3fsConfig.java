package ucm.store.ds3fs;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * The configuration of the store {@code Ds3fs} beside that of a store of files: the keys that no other store
 * of files has, those that have another default here, and their values, checked. The ranges of rings and
 * memory are those of LMCache's hf3fs backend, whose names are understood as well; those of the original
 * lie within.
 *
 * @param readBytes shared memory for reading, on each mount
 * @param writeBytes shared memory for writing, on each mount
 * @param library empty when it is to be searched for
 * @param mountPoint empty when it is to be asked for
 */
record Ds3fsConfig(
    List<String> directories,
    int localRanks,
    int streams,
    RingSettings rings,
    long readBytes,
    long writeBytes,
    String library,
    String mountPoint,
    long timeoutNanos) {

  private static final long MIB = 1L << 20;

  static final ConfigKey<Boolean> IO_DIRECT =
      CommonKeys.IO_DIRECT
          .defaultTo(true)
          .doc(
              "Open files with O_DIRECT. Their bytes go through USRBIO and past the page cache in"
                  + " any case.");

  static final ConfigKey<Integer> WAITING_QUEUE_DEPTH =
      CommonKeys.WAITING_QUEUE_DEPTH.defaultTo(1024);

  static final ConfigKey<Integer> RUNNING_QUEUE_DEPTH =
      CommonKeys.RUNNING_QUEUE_DEPTH.defaultTo(32_768);

  static final ConfigKey<Integer> STREAM_NUMBER =
      ConfigKey.integer("stream_number")
          .alias("io_thread_num", "hf3fs_io_thread_num")
          .range(1, 1024)
          .defaultTo(32)
          .unit("threads")
          .doc(
              "Most threads that move data, each with a ring for reading and one for writing on"
                  + " each mount; no more are started than the work needs.");

  static final ConfigKey<Integer> IOR_ENTRIES =
      ConfigKey.integer("ior_entries")
          .alias("hf3fs_ior_entries")
          .range(1, 1024)
          .defaultTo(256)
          .unit("requests")
          .doc("Most requests to 3FS under way on one ring; 1 has each wait for the one before.");

  static final ConfigKey<Integer> IOR_DEPTH =
      ConfigKey.integer("ior_depth")
          .alias("hf3fs_io_depth")
          .range(-128, 128)
          .defaultTo(0)
          .unit("requests")
          .doc(
              "How 3FS takes requests from a ring: 0 at once; n > 0 in batches of exactly n, which"
                  + " are filled up with repetitions; n < 0 in batches of at most |n|.");

  static final ConfigKey<Integer> NUMA_ID =
      ConfigKey.integer("numa_id")
          .alias("hf3fs_numa_id")
          .range(-1, 1023)
          .defaultTo(-1)
          .doc("NUMA node of rings and shared memory; -1 leaves that to the kernel.");

  static final ConfigKey<Long> IOV_SIZE =
      ConfigKey.longInteger("iov_size")
          .alias("hf3fs_iov_size")
          .range(100 * MIB, 2048 * MIB)
          .defaultTo(200 * MIB)
          .unit("bytes")
          .doc(
              "Memory in /dev/shm for reading, and as much for writing, on each mount, shared by"
                  + " the threads of a worker. Memory of an upstream Cache comes on top.");

  static final ConfigKey<Long> IOV_READ_SIZE =
      ConfigKey.longInteger("iov_read_size")
          .range(MIB, 1L << 40)
          .defaultDescribed("iov_size")
          .unit("bytes")
          .doc("The same for reading alone.");

  static final ConfigKey<Long> IOV_WRITE_SIZE =
      ConfigKey.longInteger("iov_write_size")
          .range(MIB, 1L << 40)
          .defaultDescribed("iov_size")
          .unit("bytes")
          .doc("The same for writing alone.");

  static final ConfigKey<String> LIBRARY_PATH =
      ConfigKey.text("ds3fs_library_path")
          .defaultDescribed("LD_LIBRARY_PATH, /usr/local/lib, the linker's folders")
          .doc("The file libhf3fs_api_shared.so of 3FS, or its folder.");

  static final ConfigKey<String> MOUNT_POINT =
      ConfigKey.text("hf3fs_mount_point")
          .defaultDescribed("found by 3FS")
          .doc(
              "Where 3FS is mounted. Not needed; when it is set, storage_backends on another mount"
                  + " are refused.");

  /** Digits of a block's id that name its folder, as in the original. */
  static final int FOLDER_DIGITS = 2;

  private static final long PAGE = 4096;

  private static final String WORKERS_OF_FILES = "ds3fs_data_trans_concurrency";
  private static final String FOLDERS_OF_FILES = "data_dir_shard_bytes";
  // Keys of stores of files that make no sense here, or have another name or default.
  private static final Set<String> REPLACED =
      Set.of(
          WORKERS_OF_FILES,
          FOLDERS_OF_FILES,
          "ds3fs_io_engine",
          IO_DIRECT.name(),
          WAITING_QUEUE_DEPTH.name(),
          RUNNING_QUEUE_DEPTH.name());

  static List<ConfigKey<?>> keys(List<ConfigKey<?>> ofFiles) {
    Stream<ConfigKey<?>> own =
        Stream.of(
            IO_DIRECT,
            WAITING_QUEUE_DEPTH,
            RUNNING_QUEUE_DEPTH,
            STREAM_NUMBER,
            IOR_ENTRIES,
            IOR_DEPTH,
            NUMA_ID,
            IOV_SIZE,
            IOV_READ_SIZE,
            IOV_WRITE_SIZE,
            LIBRARY_PATH,
            MOUNT_POINT,
            CommonKeys.LOCAL_RANK_SIZE);
    return Stream.concat(ofFiles.stream().filter(key -> !REPLACED.contains(key.name())), own)
        .toList();
  }

  /** The configuration as a store of files knows it. */
  static StoreConfig ofFiles(StoreConfig config) {
    Map<String, StoreConfig.Value> more = new LinkedHashMap<>();
    long digits = FOLDER_DIGITS;
    more.put(FOLDERS_OF_FILES, new StoreConfig.Value(digits, config.origin(STREAM_NUMBER)));
    put(more, config, STREAM_NUMBER, WORKERS_OF_FILES);
    put(more, config, IO_DIRECT, IO_DIRECT.name());
    put(more, config, WAITING_QUEUE_DEPTH, WAITING_QUEUE_DEPTH.name());
    put(more, config, RUNNING_QUEUE_DEPTH, RUNNING_QUEUE_DEPTH.name());
    return config.with(more);
  }

  private static void put(
      Map<String, StoreConfig.Value> more, StoreConfig config, ConfigKey<?> from, String name) {
    more.put(name, new StoreConfig.Value(config.get(from), config.origin(from)));
  }

  /** Reads and checks the keys; faults are recorded in {@code config}. */
  static Ds3fsConfig from(StoreConfig config) {
    int streams = config.get(STREAM_NUMBER);
    RingSettings rings =
        new RingSettings(config.get(IOR_ENTRIES), config.get(IOR_DEPTH), config.get(NUMA_ID));
    if (rings.depth() > rings.entries()) {
      config.reject(
          IOR_DEPTH,
          ("is %s, a batch that never fits into a ring of ior_entries %s: lower it, or raise"
                  + " ior_entries")
              .formatted(rings.depth(), rings.entries()));
    }
    long size = config.get(IOV_SIZE);
    return new Ds3fsConfig(
        config.get(CommonKeys.STORAGE_BACKENDS),
        config.get(CommonKeys.LOCAL_RANK_SIZE),
        streams,
        rings,
        shared(config, IOV_READ_SIZE, size, streams),
        shared(config, IOV_WRITE_SIZE, size, streams),
        config.find(LIBRARY_PATH).orElse(""),
        config.find(MOUNT_POINT).orElse(""),
        TimeUnit.MILLISECONDS.toNanos(config.get(CommonKeys.TIMEOUT_MS)));
  }

  private static long shared(StoreConfig config, ConfigKey<Long> key, long size, int streams) {
    long bytes = config.find(key).orElse(size);
    if (bytes / streams < PAGE) {
      config.reject(
          key,
          ("is %s bytes, which is less than a page for each of %s threads: raise it, or lower"
                  + " stream_number")
              .formatted(bytes, streams));
    }
    return bytes;
  }

  /** Shared memory that one worker takes on one mount. */
  long sharedBytes() {
    return readBytes + writeBytes;
  }
}
