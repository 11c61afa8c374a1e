package ucm.store.file.volume;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
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
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.format.BlockPaths;

/**
 * Tries out a directory: creates a file, writes 4 KiB, waits until they are on the volume, reads them
 * back, compares, and removes the file.
 *
 * <p>A directory in which nothing can be written, because it is full, read-only or not ours, has
 * answered: that is logged once and is no failure, see {@link VolumeFaults}. Not thread-safe.
 */
public final class FileProbe implements Runnable {

  private static final Logger LOG = LoggerFactory.getLogger(FileProbe.class);
  private static final int PAGE = BlockFooter.ALIGNMENT;
  private static final String DIRECT_NAME = "/.direct-probe-";
  private static final int DEPTH = 2;

  private final FileOperations files;
  private final String stage;
  private final NativePath folder;
  private final NativePath path;
  private int round;
  private int reported;

  private FileProbe(FileOperations files, String stage, String folder, String name) {
    this.files = files;
    this.stage = stage;
    this.folder = NativePath.of(folder);
    this.path = NativePath.of(folder + "/" + name);
  }

  /**
   * The probe of a directory. A store that only looks up writes nothing, so its probe only reads. The file of
   * another one is in the folder of the writers' leases: one left by a process that died is removed from there
   * by the next start, like the lease of a dead writer.
   */
  public static Runnable of(FileStoreConfig config, FileOperations files, String directory) {
    if (!config.isScheduler()) {
      String name =
          BlockPaths.PROBE
              + ProcessHandle.current().pid()
              + "-"
              + Long.toHexString(ThreadLocalRandom.current().nextLong());
      String folder = directory + "/" + BlockPaths.WRITERS;
      return new FileProbe(files, config.kind().name(), folder, name);
    }
    NativePath path = NativePath.of(directory + "/.");
    return () -> {
      if (files.size(path) == FileOperations.ABSENT) {
        throw new StoreException("the directory " + directory + " is gone");
      }
    };
  }

  /**
   * Probes.
   *
   * @throws StoreException when the directory does not work
   */
  @Override
  public void run() {
    try {
      compare(files, new PsyncQueue(files, false), create(), path, ++round, false);
    } catch (FileException e) {
      if (VolumeFaults.isFault(e)) {
        throw e;
      }
      if (reported != e.errno()) {
        reported = e.errno();
        LOG.warn(
            "{} cannot write in {}, and goes on to look up and load what is there: {}",
            stage,
            folder,
            e.getMessage());
      }
      return;
    }
    if (reported != 0) {
      reported = 0;
      LOG.info("{} can write in {} again", stage, folder);
    }
  }

  /**
   * Writes a page to a new file, reads it back and compares; the file goes, whatever comes.
   *
   * @param isDirect whether past the page cache; else the page is synced before it is read
   */
  private static void compare(
      FileOperations files, IoQueue queue, int fd, NativePath path, int round, boolean isDirect) {
    try (Undone _ = () -> files.remove(path);
        Undone _ = () -> files.close(fd, path);
        Arena arena = Arena.ofShared();
        Undone _ = queue::drain) {
      MemorySegment written = arena.allocate(PAGE, PAGE);
      MemorySegment read = arena.allocate(PAGE, PAGE);
      // Other bytes each time, and never a line feed: no old file and no list of names looks like
      // it.
      for (int i = 0; i < PAGE; i++) {
        written.set(ValueLayout.JAVA_BYTE, i, (byte) (0x80 | (i * 31 + round)));
      }
      if (isDirect) {
        files.setDirect(fd, path);
      }
      queue.write(fd, path, new IoVector().add(written), 0);
      queue.await();
      if (!isDirect) {
        files.syncData(fd, path);
      }
      queue.read(fd, path, new IoVector().add(read), 0);
      queue.await();
      if (written.mismatch(read) >= 0) {
        throw new FileException("a read gave other bytes than were written to", path, Errno.EIO);
      }
    }
  }

  /** What is to be undone, whatever comes. */
  private interface Undone extends AutoCloseable {
    @Override
    void close();
  }

  private int create() {
    // Each time: a link in its place would lead out of the directory.
    files.makeFolder(folder);
    try {
      return create(files, path);
    } catch (FileException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
      // Left by a probe that could not remove it.
      files.remove(path);
      return create(files, path);
    }
  }

  private static int create(FileOperations files, NativePath path) {
    int fd = files.create(path);
    if (fd == FileOperations.ABSENT) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    return fd;
  }

  /**
   * Finds out when a store is opened, and not with the first block, whether the file system of a
   * directory takes {@code io_direct}: writes a page past the page cache and reads it back.
   *
   * @throws StoreException when its file system refuses, or the page cannot be written
   */
  public static void direct(StoreKind kind, FileOperations files, String directory) {
    try {
      direct(files, new PsyncQueue(files, true), directory);
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
   * The same with the kernel's asynchronous I/O.
   *
   * @throws FileException when the kernel, or the file system, refuses
   */
  public static void direct(FileOperations files, KernelQueue.Opener opener, String directory) {
    try (IoQueue queue = new AsyncQueue(files, opener, DEPTH)) {
      direct(files, queue, directory);
    }
  }

  private static void direct(FileOperations files, IoQueue queue, String directory) {
    NativePath path = NativePath.of(directory).append(DIRECT_NAME);
    path.appendHex(ThreadLocalRandom.current().nextLong(), 16);
    compare(files, queue, create(files, path), path, 0, true);
  }
}
