package ucm.store.file.format;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.NativePath;
import ucm.platform.thread.WorkThreads;
import ucm.store.file.config.StoreKind;

/**
 * A folder that holds bytes of a store: blocks, or its quarantine.
 *
 * @param slot its number among those of all directories, see {@link BlockPaths#slots}
 */
public record Folder(int directory, int slot, String path) {

  /** Receives each regular file of a folder. */
  public interface FileVisitor {

    /**
     * One file.
     *
     * @param bytes the space it takes, see {@link #inUnits}
     * @param lastUseNanos its access time, in nanoseconds since 1970
     */
    void file(String name, long bytes, long lastUseNanos);
  }

  // What ext4, XFS and tmpfs allocate at least, and a multiple of.
  private static final int UNIT_BYTES = 4096;
  // Fewer folders than this are not worth a thread.
  private static final int FOLDERS_PER_THREAD = 64;

  /**
   * Shows each of some folders to an action, in any order, and returns when all are done. More than one thread pays
   * where a call waits for a file server; small trees get one.
   *
   * @param most threads beside the caller's
   * @throws RuntimeException the first that the action threw; then it is shown nothing more
   */
  public static void forEach(
      StoreKind kind, int most, List<Folder> folders, Consumer<Folder> action) {
    int threads = Math.min(most, folders.size() / FOLDERS_PER_THREAD);
    if (threads == 0) {
      folders.forEach(action);
      return;
    }
    WorkThreads.forEach(kind.threads("walk"), threads, folders, () -> false, action);
  }

  /** Space that a file takes, from its size: whole units of 4 KiB. */
  public static long inUnits(long size) {
    return (size + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
  }

  /** When its entries last changed, in milliseconds since 1970; 0 when it is gone. */
  public long changedMillis(FileOperations files) {
    FileStat stat = new FileStat();
    return files.stat(NativePath.of(path), stat)
        ? TimeUnit.NANOSECONDS.toMillis(stat.changedNanos())
        : 0;
  }

  /**
   * Shows its files. Those that vanish meanwhile are left out.
   *
   * @throws FileException when it cannot be read
   */
  public void visit(FileOperations files, FileVisitor visitor) {
    NativePath file = new NativePath();
    FileStat stat = new FileStat();
    try {
      files.forEachName(
          NativePath.of(path),
          name -> {
            file.set(path).append('/').append(name);
            if (files.stat(file, stat) && stat.isFile()) {
              visitor.file(name, inUnits(stat.size()), stat.lastUseNanos());
            }
            return true;
          });
    } catch (FileException e) {
      // Something that is no folder may have the name of one; it holds no blocks.
      if (e.errno() != Errno.ENOTDIR) {
        throw e;
      }
    }
  }
}
