package ucm.store.ds3fs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.StoreMetrics.Counter;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/**
 * A mounted 3FS, with the memory that its client on this machine shares with us: some for reading and some
 * for writing, of which each worker gets a part, and some that is lent to the upper stage. Thread-safe.
 */
final class Mount {

  /** Bytes that 3FS moved from or to memory of the upper stage. */
  final Counter directBytes;

  /** Bytes that went through the staging memory. */
  final Counter copiedBytes;

  private final String point;
  private final List<String> directories;
  private final RingSettings rings;
  private final StagingMemory readMemory;
  private final StagingMemory writeMemory;
  private volatile @Nullable UsrbioMemory offered;

  // Guarded by this.
  private boolean isInUse;

  /**
   * Takes the memory.
   *
   * @param point the mount point
   * @param directories the directories on it
   */
  Mount(String point, List<String> directories, Ds3fsConfig config, StoreMetrics metrics) {
    this.point = point;
    this.directories = List.copyOf(directories);
    this.rings = config.rings();
    directBytes =
        metrics.counter("ds3fs_direct_bytes", "Bytes moved without a copy, in lent memory");
    copiedBytes = metrics.counter("ds3fs_copied_bytes", "Bytes copied through shared memory");
    readMemory = new StagingMemory(point, config, config.readBytes());
    try {
      writeMemory = new StagingMemory(point, config, config.writeBytes());
    } catch (RuntimeException e) {
      readMemory.close();
      throw e;
    }
  }

  String point() {
    return point;
  }

  /**
   * The mounts of directories that are there. The library is loaded.
   *
   * @param expected the mount point they must be on; empty for any
   * @return the directories by mount point, in the order in which they are named
   * @throws StoreException when one is on none, or on another one than expected
   */
  static Map<String, List<String>> find(List<String> directories, String expected) {
    Map<String, List<String>> found = new LinkedHashMap<>();
    for (String directory : directories) {
      String point = mountPoint(directory);
      if (!expected.isEmpty() && !point.equals(withoutSlash(expected))) {
        throw new StoreException(
            ("storage_backends names %s, which is on the 3FS mounted at %s; hf3fs_mount_point is"
                    + " %s: correct one of both, or leave hf3fs_mount_point out")
                .formatted(directory, point, expected));
      }
      requireHf3fs(directory, point);
      found.computeIfAbsent(point, p -> new ArrayList<>()).add(directory);
    }
    return found;
  }

  private static String withoutSlash(String path) {
    return path.length() > 1 && path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
  }

  private static String mountPoint(String directory) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment point = arena.allocate(UsrbioLibrary.MOUNT_POINT_BYTES);
      int length =
          UsrbioLibrary.hf3fs_extract_mount_point(
              point.address(),
              UsrbioLibrary.MOUNT_POINT_BYTES,
              arena.allocateFrom(directory).address());
      if (length <= 0) {
        throw notOn3fs(directory, "it is below no mount point of 3FS");
      }
      if (length > UsrbioLibrary.MOUNT_POINT_BYTES) {
        throw new StoreException(
            ("storage_backends names %s, and the mount point of its 3FS has more than %s bytes,"
                    + " which USRBIO cannot take: mount it elsewhere")
                .formatted(directory, UsrbioLibrary.MOUNT_POINT_BYTES - 1));
      }
      return point.getString(0);
    }
  }

  private static void requireHf3fs(String directory, String point) {
    FileOperations files = new LibcFileOperations();
    NativePath path = NativePath.of(directory);
    int fd = files.openRead(path);
    if (fd < 0) {
      throw notOn3fs(directory, "it cannot be opened");
    }
    try {
      if (UsrbioLibrary.hf3fs_is_hf3fs(fd) == 0) {
        throw notOn3fs(directory, "it is below " + point + " but no part of the 3FS there");
      }
    } finally {
      files.close(fd, path);
    }
  }

  private static StoreException notOn3fs(String directory, String why) {
    return new StoreException(
        ("storage_backends names %s, which is not on 3FS: %s; start the FUSE client of 3FS on this"
                + " machine (in a container, mount its folder with HostToContainer propagation) and"
                + " name a folder on it, or use another store of files")
            .formatted(directory, why));
  }

  /** Whether a file is in one of the directories on this mount. */
  boolean holds(String path) {
    return directories.stream().anyMatch(directory -> path.startsWith(directory + "/"));
  }

  /**
   * A ring for one worker.
   *
   * @throws ucm.platform.libc.FileException when 3FS refuses it, or memory for it
   * @throws StoreException when there is no room for that memory
   */
  RingMover newMover(boolean isRead) {
    StagingMemory memory = isRead ? readMemory : writeMemory;
    StagingMemory.Part part = memory.take();
    try {
      return new RingMover(this, isRead, rings, part);
    } catch (RuntimeException e) {
      memory.giveBack(part);
      throw e;
    }
  }

  /** Lends memory to the upper stage, once. */
  MemorySegment offer(long byteSize) {
    UsrbioMemory memory = new UsrbioMemory(point, byteSize, rings.numaId());
    offered = memory;
    return memory.segment;
  }

  /** Whether a stretch of memory is of what was lent, and can be named in requests. */
  boolean isOffered(long address, long length) {
    UsrbioMemory memory = offered;
    return memory != null && memory.contains(address, length);
  }

  MemorySegment offeredHandle() {
    return Objects.requireNonNull(offered).handle;
  }

  /** A ring was closed on which requests are under way, which may touch the memory any time. */
  synchronized void leaveMemory() {
    isInUse = true;
  }

  /** Gives the memory back; the rings are closed, and the upper stage as well. */
  synchronized void close() {
    List<UsrbioMemory> all = new ArrayList<>(readMemory.all());
    all.addAll(writeMemory.all());
    UsrbioMemory lent = offered;
    if (lent != null) {
      all.add(lent);
    }
    all.forEach(isInUse ? UsrbioMemory::leave : UsrbioMemory::close);
  }

  @Override
  public String toString() {
    return point;
  }
}
