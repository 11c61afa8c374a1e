package ucm.store.file.health;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ThreadLocalRandom;
import ucm.platform.io.AsyncQueue;
import ucm.platform.io.IoQueue;
import ucm.platform.io.KernelQueue;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.BlockFooter;

/** Finds out whether the kernel's asynchronous I/O works in a directory, by a page written and read with it. */
public final class AsyncProbe {

  private static final String NAME = "/.async-probe-";
  private static final int PAGE = BlockFooter.ALIGNMENT;
  private static final int DEPTH = 2;

  private AsyncProbe() {}

  /**
   * Tries one directory.
   *
   * @throws FileException when the kernel, or the file system, refuses
   */
  public static void run(FileOperations files, KernelQueue.Opener opener, String folder) {
    NativePath path = NativePath.of(folder).append(NAME);
    path.appendHex(ThreadLocalRandom.current().nextLong(), 16);
    int fd = files.create(path);
    if (fd < 0) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    try {
      files.setDirect(fd, path);
      writeAndRead(files, opener, fd, path);
    } finally {
      DirectProbe.closeAndRemove(files, fd, path);
    }
  }

  private static void writeAndRead(
      FileOperations files, KernelQueue.Opener opener, int fd, NativePath path) {
    try (Arena arena = Arena.ofShared();
        IoQueue queue = new AsyncQueue(files, opener, DEPTH)) {
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
