package ucm.store.posix;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ThreadLocalRandom;
import ucm.api.StoreException;
import ucm.store.common.BlockFooter;
import ucm.store.common.Errno;
import ucm.store.common.FileException;
import ucm.store.common.FileSeam;
import ucm.store.common.IoVector;
import ucm.store.common.NativePath;

/**
 * Finds out when a store is opened, and not with the first block, whether the file system of a backend
 * takes {@code io_direct}: writes a page past the page cache and reads it back.
 */
final class DirectProbe {

  private static final String NAME = "/.direct-probe-";
  private static final int PAGE = BlockFooter.ALIGNMENT;

  private DirectProbe() {}

  /**
   * Tries one backend.
   *
   * @throws StoreException when its file system refuses, or the page cannot be written
   */
  static void run(StoreKind kind, FileSeam files, String backend) {
    NativePath path = NativePath.of(backend).append(NAME);
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
              + backend
              + ": "
              + e.getMessage()
              + (e.errno() == Errno.EINVAL
                  ? "; its file system refuses O_DIRECT: set io_direct: false, or name a directory"
                      + " of another file system in storage_backends"
                  : "; make the directory of storage_backends writable, or name another"),
          e);
    }
  }

  private static void writeAndRead(FileSeam files, int fd, NativePath path) {
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

  private static void closeAndRemove(FileSeam files, int fd, NativePath path) {
    try {
      files.close(fd, path);
    } finally {
      files.remove(path);
    }
  }
}
