package ucm.store.file.health;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.VectorIo;

/**
 * Tries out a directory: creates a file, writes 4 KiB, waits until they are on the volume, reads them
 * back, compares, and removes the file.
 *
 * <p>A directory in which nothing can be written, because it is full, read-only or not ours, has
 * answered: that is logged once and is no failure, see {@link VolumeFaults}. Not thread-safe.
 */
public final class FileProbe implements Runnable {

  private static final Logger LOG = LoggerFactory.getLogger(FileProbe.class);
  private static final int BYTES = 4096;

  private final FileOperations files;
  private final String stage;
  private final NativePath folder;
  private final NativePath path;
  private final MemorySegment written = Arena.ofAuto().allocate(BYTES);
  private final MemorySegment read = Arena.ofAuto().allocate(BYTES);
  private int round;
  private int reported;

  /**
   * Does nothing yet.
   *
   * @param stage names the store in messages
   * @param folder where the file is made; is itself made where it is missing
   * @param name the file, of this process and this store alone
   */
  public FileProbe(FileOperations files, String stage, String folder, String name) {
    this.files = files;
    this.stage = stage;
    this.folder = NativePath.of(folder);
    this.path = NativePath.of(folder + "/" + name);
  }

  /**
   * Probes.
   *
   * @throws StoreException when the directory does not work
   */
  @Override
  public void run() {
    try {
      writeAndRead();
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

  private void writeAndRead() {
    // Other bytes each time, and never a line feed: no old file and no list of names looks like it.
    round++;
    for (int i = 0; i < BYTES; i++) {
      written.set(ValueLayout.JAVA_BYTE, i, (byte) (0x80 | (i * 31 + round)));
    }
    int fd = create();
    try (Undone _ = () -> files.remove(path);
        Undone _ = () -> files.close(fd, path)) {
      VectorIo.writeFully(files, fd, path, new IoVector().add(written), 0);
      files.syncData(fd, path);
      read.fill((byte) 0);
      VectorIo.readFully(files, fd, path, new IoVector().add(read), 0);
      long differs = written.mismatch(read);
      if (differs >= 0) {
        throw new StoreException(
            "a probe wrote 4096 bytes to " + path + " and read others back, from byte " + differs);
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
    int fd = createOnce();
    if (fd == FileOperations.ABSENT) {
      throw new FileException("open", path, Errno.ENOENT);
    }
    return fd;
  }

  private int createOnce() {
    try {
      return files.create(path);
    } catch (FileException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
      // Left by a probe that could not remove it.
      files.remove(path);
      return files.create(path);
    }
  }
}
