package ucm.store.file.health;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ThreadLocalRandom;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockFooter;

/**
 * Finds out when a store is opened, and not with the first block, whether the file system of a directory
 * takes {@code io_direct}: writes a page past the page cache and reads it back.
 */
public final class DirectProbe {

  private static final String NAME = "/.direct-probe-";
  private static final int PAGE = BlockFooter.ALIGNMENT;

  private DirectProbe() {}

  /**
   * Tries one directory.
   *
   * @throws StoreException when its file system refuses, or the page cannot be written
   */
  public static void run(StoreKind kind, FileOperations files, String directory) {
    NativePath path = NativePath.of(directory).append(NAME);
    path.appendHex(ThreadLocalRandom.current().nextLong(), 16);
    try {
      int fd = files.create(path);
      if (fd < 0) {
        throw new FileException("open", path, Errno.ENOENT);
      }
      try {
        writeAndRead(files, fd, path);
      } finally {
        closeAndRemove(files, fd, path);
      }
    } catch (FileException e) {
      throw new StoreException(
          kind.name()
              + " cannot use io_direct: true in "
              + directory
              + ": "
              + e.getMessage()
              + (e.errno() == Errno.EINVAL
                  ? "; its file system refuses O_DIRECT: set io_direct: false, or name a directory"
                      + " of another file system in storage_backends"
                  : "; make the directory of storage_backends writable, or name another"),
          e);
    }
  }

  private static void writeAndRead(FileOperations files, int fd, NativePath path) {
    files.setDirect(fd, path);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment written = arena.allocate(PAGE, PAGE).fill((byte) 0x5a);
      MemorySegment read = arena.allocate(PAGE, PAGE);
      requirePage("pwritev", files.writeAt(fd, path, new IoVector().add(written), 0), path);
      requirePage("preadv", files.readAt(fd, path, new IoVector().add(read), 0), path);
      if (written.mismatch(read) >= 0) {
        throw new FileException("preadv gave other bytes than were written to", path, Errno.EIO);
      }
    }
  }

  private static void requirePage(String call, long bytes, NativePath path) {
    if (bytes != PAGE) {
      throw new FileException(
          call + " of a page moved only " + bytes + " bytes of", path, Errno.EIO);
    }
  }

  /** Ends a probe. */
  static void closeAndRemove(FileOperations files, int fd, NativePath path) {
    try {
      files.close(fd, path);
    } finally {
      files.remove(path);
    }
  }
}
