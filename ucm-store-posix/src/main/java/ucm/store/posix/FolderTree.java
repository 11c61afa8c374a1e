package ucm.store.posix;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import ucm.store.common.BlockPaths;

/**
 * The folders that hold the bytes of a store, over all its backends: those of blocks, and the
 * quarantine. Each has a slot, a number from 0 to {@link #slots} - 1. Thread-safe.
 */
final class FolderTree {

  /** A folder that is there. */
  record Folder(int backend, int slot, Path path) {}

  /** Is told of each regular file of a folder. */
  interface FileVisitor {

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
  private static final String SINGLE_FOLDER = "data";

  private final BlockPaths paths;
  private final int digits;
  private final int slotsPerBackend;

  FolderTree(BlockPaths paths, int digits) {
    this.paths = paths;
    this.digits = digits;
    this.slotsPerBackend = (1 << (4 * digits)) + 1;
  }

  /** How many folders there can be. */
  int slots() {
    return slotsPerBackend * paths.backends().size();
  }

  /** The slot of a block's folder. */
  int slot(long idHigh, long idLow) {
    return slotsPerBackend * paths.backendOf(idHigh, idLow) + paths.folderNumber(idHigh);
  }

  /** Space that a file takes, from its size. */
  static long inUnits(long size) {
    return (size + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
  }

  /**
   * The folders that are there now.
   *
   * @throws UncheckedIOException when a backend cannot be read
   */
  List<Folder> folders() {
    List<Folder> folders = new ArrayList<>();
    for (int backend = 0; backend < paths.backends().size(); backend++) {
      Path root = Path.of(paths.backends().get(backend));
      try (DirectoryStream<Path> entries = Files.newDirectoryStream(root)) {
        for (Path entry : entries) {
          int number = number(entry.getFileName().toString());
          if (number >= 0) {
            folders.add(new Folder(backend, slotsPerBackend * backend + number, entry));
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } catch (DirectoryIteratorException e) {
        throw new UncheckedIOException(e.getCause());
      }
    }
    return folders;
  }

  /** The number of a folder within its backend, -1 for what is no folder of ours. */
  private int number(String name) {
    if (name.equals(BlockPaths.QUARANTINE)) {
      return slotsPerBackend - 1;
    }
    if (digits == 0) {
      return name.equals(SINGLE_FOLDER) ? 0 : -1;
    }
    return name.length() == digits && HEX.matcher(name).matches() ? Integer.parseInt(name, 16) : -1;
  }

  /** Whether a folder holds blocks. */
  boolean holdsBlocks(Folder folder) {
    return folder.slot() % slotsPerBackend != slotsPerBackend - 1;
  }

  /** When a folder's entries last changed, in milliseconds since 1970; 0 when it is gone. */
  static long changedMillis(Folder folder) {
    try {
      return Files.getLastModifiedTime(folder.path(), LinkOption.NOFOLLOW_LINKS).toMillis();
    } catch (NoSuchFileException e) {
      return 0;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Shows the files of a folder. Those that vanish meanwhile are left out.
   *
   * @throws UncheckedIOException when the folder cannot be read
   */
  static void visit(Folder folder, FileVisitor visitor) {
    if (!Files.isDirectory(folder.path())) {
      // Something else has its name, or it has gone since; a pipe would hold whoever opens it.
      return;
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder.path())) {
      for (Path entry : entries) {
        visitFile(entry, visitor);
      }
    } catch (NoSuchFileException e) {
      // The folder has gone since it was listed: it holds nothing.
      return;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (DirectoryIteratorException e) {
      throw new UncheckedIOException(e.getCause());
    }
  }

  private static void visitFile(Path file, FileVisitor visitor) throws IOException {
    BasicFileAttributes found;
    try {
      found = Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    } catch (NoSuchFileException e) {
      return;
    }
    if (found.isRegularFile()) {
      visitor.file(
          file.getFileName().toString(),
          inUnits(found.size()),
          found.lastAccessTime().to(TimeUnit.NANOSECONDS));
    }
  }
}
