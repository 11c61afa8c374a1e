package ucm.store.ds3fs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.api.StoreException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/** Finds out which mounts of 3FS directories are on. The library is loaded. */
final class MountFinder {

  private final FileOperations files = new LibcFileOperations();

  /**
   * The mounts of directories that are there.
   *
   * @param expected the mount point they must be on; empty for any
   * @return the directories by mount point, in the order in which they are named
   * @throws StoreException when one is on none, or on another one than expected
   */
  Map<String, List<String>> find(List<String> directories, String expected) {
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
      MemorySegment point = arena.allocate(UsrbioCalls.MOUNT_POINT_BYTES);
      int length =
          UsrbioCalls.hf3fs_extract_mount_point(
              point.address(),
              UsrbioCalls.MOUNT_POINT_BYTES,
              arena.allocateFrom(directory).address());
      if (length <= 0) {
        throw notOn3fs(directory, "it is below no mount point of 3FS");
      }
      if (length > UsrbioCalls.MOUNT_POINT_BYTES) {
        throw new StoreException(
            ("storage_backends names %s, and the mount point of its 3FS has more than %s bytes,"
                    + " which USRBIO cannot take: mount it elsewhere")
                .formatted(directory, UsrbioCalls.MOUNT_POINT_BYTES - 1));
      }
      return point.getString(0);
    }
  }

  private void requireHf3fs(String directory, String point) {
    NativePath path = NativePath.of(directory);
    int fd = files.openRead(path);
    if (fd < 0) {
      throw notOn3fs(directory, "it cannot be opened");
    }
    try {
      if (UsrbioCalls.hf3fs_is_hf3fs(fd) == 0) {
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
}
