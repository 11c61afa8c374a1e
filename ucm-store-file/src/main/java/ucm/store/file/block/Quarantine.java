package ucm.store.file.block;

import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.format.BlockPaths;

/**
 * Takes files that are not whole blocks of this store out of the tree, so that they answer no look-up:
 * into {@code .quarantine} of their directory, where they can be inspected. That folder keeps a
 * bounded number; when it is full, further files are removed. Thread-safe.
 */
public record Quarantine(FileOperations operations, BlockPaths paths, FileStoreMetrics metrics) {

  /** Most files kept for each directory, and some more when several are found at once. */
  public static final int MAX_FILES = 64;

  private static final Logger LOG = LoggerFactory.getLogger(Quarantine.class);
  private static final AtomicLong SEQUENCE = new AtomicLong(System.currentTimeMillis() << 20);

  /** Takes a block's file away, counts it, and logs what is wrong with it. Does not throw. */
  void take(long idHigh, long idLow, String reason) {
    NativePath path = paths.block(new NativePath(), idHigh, idLow);
    try {
      boolean keep = moveAside(operations, paths, idHigh, idLow);
      metrics.corruptBlocks.increment();
      metrics.quarantinedBlocks.increment();
      LOG.warn(
          "{} did not serve {}: {}; the file is {}",
          paths.store(),
          path,
          reason,
          keep
              ? "in " + BlockPaths.QUARANTINE
              : "removed, as " + BlockPaths.QUARANTINE + " is full");
    } catch (FileException e) {
      if (e.errno() == Errno.ENOENT && isGone(path)) {
        // Another thread, which reads another part of it, has taken it away.
        return;
      }
      metrics.corruptBlocks.increment();
      LOG.warn(
          "{} did not serve {}: {}; and cannot move it aside: {}",
          paths.store(),
          path,
          reason,
          e.getMessage());
    }
  }

  /** Whether the file is missing; the folder to move it to may be what is. */
  private boolean isGone(NativePath path) {
    try {
      return operations.size(path) < 0;
    } catch (FileException e) {
      return false;
    }
  }

  /**
   * Takes a block's file away.
   *
   * @return whether it is kept; false when there was no room, and it was removed
   * @throws FileException when that cannot be done
   */
  public static boolean moveAside(
      FileOperations operations, BlockPaths paths, long idHigh, long idLow) {
    NativePath path = paths.block(new NativePath(), idHigh, idLow);
    int directory = paths.directoryOf(idHigh, idLow);
    operations.requireOwn(paths.folder(new NativePath(), directory, idHigh));
    NativePath folder = paths.inDirectory(directory, BlockPaths.QUARANTINE);
    // Each time: a link in its place would lead out of the directory.
    operations.makeFolder(folder);
    if (operations.list(folder).size() >= MAX_FILES) {
      if (!operations.remove(path)) {
        throw new FileException("unlink", path, Errno.ENOENT);
      }
      return false;
    }
    String name = BlockIds.hex(idHigh, idLow) + "." + Long.toHexString(SEQUENCE.getAndIncrement());
    operations.rename(path, folder.append('/').append(name));
    return true;
  }
}
