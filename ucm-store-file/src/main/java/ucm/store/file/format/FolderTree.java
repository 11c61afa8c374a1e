package ucm.store.file.format;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.NativePath;

/**
 * The folders that hold the bytes of a store, over all its directories: those of blocks, and the
 * quarantine. Each has a slot, a number from 0 to {@link #slots} - 1. Thread-safe.
 */
public final class FolderTree {

  /** A folder that is there. */
  public record Folder(int directory, int slot, String path) {}

  /** Receives each regular file of a folder. */
  public interface FileVisitor {

    /**
     * One file.
     *
     * @param bytes the space it takes, in whole units of {@link FolderTree#UNIT_BYTES}
     * @param lastUseNanos its access time, in nanoseconds since 1970
     */
    void file(String name, long bytes, long lastUseNanos);
  }

  /** What ext4, XFS and tmpfs allocate at least, and a multiple of. */
  static final int UNIT_BYTES = 4096;

  private static final Pattern HEX = Pattern.compile("[0-9a-f]*");

  private final BlockPaths paths;
  private final int digits;
  private final int slotsPerDirectory;

  public FolderTree(BlockPaths paths, int digits) {
    this.paths = paths;
    this.digits = digits;
    this.slotsPerDirectory = (1 << (4 * digits)) + 1;
  }

  /** How many folders there can be. */
  public int slots() {
    return firstSlot(paths.directories().size());
  }

  /** The slot of a block's folder. */
  public int slot(long idHigh, long idLow) {
    return firstSlot(paths.directoryOf(idHigh, idLow)) + paths.folderNumber(idHigh);
  }

  /** Space that a file takes, from its size. */
  public static long inUnits(long size) {
    return (size + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
  }

  /** The first slot of a directory; its quarantine has the last. */
  public int firstSlot(int directory) {
    return slotsPerDirectory * directory;
  }

  /** The directory that a slot is in. */
  public int directoryOf(int slot) {
    return slot / slotsPerDirectory;
  }

  /**
   * The folders that are there now in one directory.
   *
   * @throws FileException when it is gone or cannot be read
   */
  public List<Folder> folders(FileOperations files, int directory) {
    String root = paths.directories().get(directory);
    NativePath path = NativePath.of(root + "/.");
    if (files.size(path) == FileOperations.ABSENT) {
      // Not to be taken for one that holds nothing.
      throw new FileException("opendir", path, Errno.ENOENT);
    }
    List<Folder> folders = new ArrayList<>();
    files.forEachName(
        path,
        name -> {
          int number = number(name);
          if (number >= 0) {
            folders.add(
                new Folder(directory, firstSlot(directory) + number, root + "/" + name));
          }
          return true;
        });
    return folders;
  }

  /** The number of a folder within its directory, -1 for what is no folder of ours. */
  private int number(String name) {
    if (name.equals(BlockPaths.QUARANTINE)) {
      return slotsPerDirectory - 1;
    }
    if (digits == 0) {
      return name.equals(BlockPaths.SINGLE_FOLDER) ? 0 : -1;
    }
    return name.length() == digits && HEX.matcher(name).matches() ? Integer.parseInt(name, 16) : -1;
  }

  /** Whether a folder holds blocks. */
  public boolean holdsBlocks(Folder folder) {
    return folder.slot() % slotsPerDirectory != slotsPerDirectory - 1;
  }

  /** When a folder's entries last changed, in milliseconds since 1970; 0 when it is gone. */
  public static long changedMillis(FileOperations files, Folder folder) {
    FileStat stat = new FileStat();
    return files.stat(NativePath.of(folder.path()), stat)
        ? TimeUnit.NANOSECONDS.toMillis(stat.changedNanos())
        : 0;
  }

  /**
   * Shows the files of a folder. Those that vanish meanwhile are left out.
   *
   * @throws FileException when the folder cannot be read
   */
  public static void visit(FileOperations files, Folder folder, FileVisitor visitor) {
    NativePath path = new NativePath();
    FileStat stat = new FileStat();
    try {
      files.forEachName(
          NativePath.of(folder.path()),
          name -> {
            path.set(folder.path()).append('/').append(name);
            if (files.stat(path, stat) && stat.isFile()) {
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
