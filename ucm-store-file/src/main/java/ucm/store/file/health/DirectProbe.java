package ucm.store.file.health;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ThreadLocalRandom;
import ucm.api.StoreException;
import ucm.platform.io.AsyncQueue;
import ucm.platform.io.IoQueue;
import ucm.platform.io.KernelQueue;
import ucm.platform.io.PsyncQueue;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockFooter;

/**
 * Finds out when a store is opened, and not with the first block, whether the file system of a directory
 * takes {@code io_direct}, and the kernel the engine that is asked for: writes a page past the page cache
 * and reads it back.
 */
public final class DirectProbe {

  private static final String NAME = "/.direct-probe-";
  private static final int PAGE = BlockFooter.ALIGNMENT;
  private static final int DEPTH = 2;

  private DirectProbe() {}

  /**
   * Tries one directory.
   *
   * @throws StoreException when its file system refuses, or the page cannot be written
   */
  public static void run(StoreKind kind, FileOperations files, String directory) {
    try {
      run(files, new PsyncQueue(files, true), directory);
    } catch (FileException e) {
      String advice =
          e.errno() == Errno.EINVAL
              ? "its file system refuses O_DIRECT: set io_direct: false, or name a directory of"
                  + " another file system in storage_backends"
              : "make the directory of storage_backends writable, or name another";
      throw new StoreException(
          "%s cannot use io_direct: true in %s: %s; %s"
              .formatted(kind.name(), directory, e.getMessage(), advice),
          e);
    }
  }

  /**
   * Tries one directory with the kernel's asynchronous I/O.
   *
   * @throws FileException when the kernel, or the file system, refuses
   */
  public static void run(FileOperations files, KernelQueue.Opener opener, String directory) {
    try (IoQueue queue = new AsyncQueue(files, opener, DEPTH)) {
      run(files, queue, directory);
    }
  }

  private static void run(FileOperations files, IoQueue queue, String directory) {
    NativePath path = NativePath.of(directory).append(NAME);
    path.appendHex(ThreadLocalRandom.current().nextLong(), 16);
    int fd = files.create(path);
    if (fd < 0) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    try {
      files.setDirect(fd, path);
      writeAndRead(queue, fd, path);
    } finally {
      try {
        files.close(fd, path);
      } finally {
        files.remove(path);
      }
    }
  }

  private static void writeAndRead(IoQueue queue, int fd, NativePath path) {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment written = arena.allocate(PAGE, PAGE).fill((byte) 0x5a);
      MemorySegment read = arena.allocate(PAGE, PAGE);
      try {
        queue.write(fd, path, new IoVector().add(written), 0);
        queue.await();
        queue.read(fd, path, new IoVector().add(read), 0);
        queue.await();
      } finally {
        queue.drain();
      }
      if (written.mismatch(read) >= 0) {
        throw new FileException("a read gave other bytes than were written to", path, Errno.EIO);
      }
    }
  }
}
