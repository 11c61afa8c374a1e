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
 * The configuration of the store {@code Ds3fs} beside that of a store of files. See {@link Ds3fsKeys} for what
 * each value means.
 *
 * @param readBytes shared memory for reading, on each mount
 * @param writeBytes shared memory for writing, on each mount
 * @param library empty when it is to be searched for
 * @param mountPoint empty when it is to be asked for
 */
record Ds3fsConfig(
    List<String> directories,
    int deviceId,
    int localRanks,
    int streams,
    RingSettings rings,
    long readBytes,
    long writeBytes,
    String library,
    String mountPoint,
    long timeoutNanos) {

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
          Ds3fsKeys.IO_DIRECT.name(),
          Ds3fsKeys.WAITING_QUEUE_DEPTH.name(),
          Ds3fsKeys.RUNNING_QUEUE_DEPTH.name());

  /** All keys of the store. */
  static List<ConfigKey<?>> keys(List<ConfigKey<?>> ofFiles) {
    Stream<ConfigKey<?>> own =
        Stream.of(
            Ds3fsKeys.IO_DIRECT,
            Ds3fsKeys.WAITING_QUEUE_DEPTH,
            Ds3fsKeys.RUNNING_QUEUE_DEPTH,
            Ds3fsKeys.STREAM_NUMBER,
            Ds3fsKeys.IOR_ENTRIES,
            Ds3fsKeys.IOR_DEPTH,
            Ds3fsKeys.NUMA_ID,
            Ds3fsKeys.IOV_SIZE,
            Ds3fsKeys.IOV_READ_SIZE,
            Ds3fsKeys.IOV_WRITE_SIZE,
            Ds3fsKeys.LIBRARY_PATH,
            Ds3fsKeys.MOUNT_POINT,
            CommonKeys.LOCAL_RANK_SIZE);
    return Stream.concat(ofFiles.stream().filter(key -> !REPLACED.contains(key.name())), own)
        .toList();
  }

  /** The configuration as a store of files knows it. */
  static StoreConfig ofFiles(StoreConfig config) {
    Map<String, StoreConfig.Value> more = new LinkedHashMap<>();
    more.put(
        FOLDERS_OF_FILES,
        new StoreConfig.Value((long) FOLDER_DIGITS, config.origin(Ds3fsKeys.STREAM_NUMBER)));
    put(more, config, Ds3fsKeys.STREAM_NUMBER, WORKERS_OF_FILES);
    put(more, config, Ds3fsKeys.IO_DIRECT, Ds3fsKeys.IO_DIRECT.name());
    put(more, config, Ds3fsKeys.WAITING_QUEUE_DEPTH, Ds3fsKeys.WAITING_QUEUE_DEPTH.name());
    put(more, config, Ds3fsKeys.RUNNING_QUEUE_DEPTH, Ds3fsKeys.RUNNING_QUEUE_DEPTH.name());
    return config.with(more);
  }

  private static void put(
      Map<String, StoreConfig.Value> more, StoreConfig config, ConfigKey<?> from, String name) {
    more.put(name, new StoreConfig.Value(config.get(from), config.origin(from)));
  }

  /** Reads and checks the keys; faults are recorded in {@code config}. */
  static Ds3fsConfig from(StoreConfig config) {
    int streams = config.get(Ds3fsKeys.STREAM_NUMBER);
    RingSettings rings =
        new RingSettings(
            config.get(Ds3fsKeys.IOR_ENTRIES),
            config.get(Ds3fsKeys.IOR_DEPTH),
            config.get(Ds3fsKeys.NUMA_ID));
    if (rings.depth() > rings.entries()) {
      config.reject(
          Ds3fsKeys.IOR_DEPTH,
          "is "
              + rings.depth()
              + ", a batch that never fits into a ring of ior_entries "
              + rings.entries()
              + ": lower it, or raise ior_entries");
    }
    long size = config.get(Ds3fsKeys.IOV_SIZE);
    return new Ds3fsConfig(
        config.get(CommonKeys.STORAGE_BACKENDS),
        config.get(CommonKeys.DEVICE_ID),
        config.get(CommonKeys.LOCAL_RANK_SIZE),
        streams,
        rings,
        shared(config, Ds3fsKeys.IOV_READ_SIZE, size, streams),
        shared(config, Ds3fsKeys.IOV_WRITE_SIZE, size, streams),
        config.find(Ds3fsKeys.LIBRARY_PATH).orElse(""),
        config.find(Ds3fsKeys.MOUNT_POINT).orElse(""),
        TimeUnit.MILLISECONDS.toNanos(config.get(CommonKeys.TIMEOUT_MS)));
  }

  private static long shared(StoreConfig config, ConfigKey<Long> key, long size, int streams) {
    long bytes = config.find(key).orElse(size);
    if (bytes / streams < PAGE) {
      config.reject(
          key,
          "is "
              + bytes
              + " bytes, which is less than a page for each of "
              + streams
              + " threads: raise it, or lower stream_number");
    }
    return bytes;
  }

  /** Whether the store only answers look-ups. */
  boolean isScheduler() {
    return deviceId < 0;
  }

  /** Shared memory that one worker takes on one mount. */
  long sharedBytes() {
    return readBytes + writeBytes;
  }
}
