package ucm.store.ds3fs;

import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;

/**
 * The configuration keys of the store {@code Ds3fs} that no other store of files has, and those that have
 * another default there. The ranges of rings and memory are those of LMCache's hf3fs backend, whose names
 * are understood as well; those of the original lie within.
 */
final class Ds3fsKeys {

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

  private Ds3fsKeys() {}
}
