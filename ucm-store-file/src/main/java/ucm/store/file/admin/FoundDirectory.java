package ucm.store.file.admin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.NativePath;
import ucm.platform.thread.WorkThreads;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.lease.FileLock;

/**
 * A directory of which only the name is known: its folders of blocks,
 * whatever number of digits their names have.
 *
 * @param root its path
 * @param folders names of its folders of blocks, sorted
 * @param isOurs whether this store has left folders of its own in it
 * @param others names of what else is there, sorted
 */
record FoundDirectory(
    StoreKind kind,
    FileOperations files,
    String root,
    List<String> folders,
    boolean isOurs,
    List<String> others) {

  /** A file with the name of a block, in the folder of that block. */
  record BlockFile(String folder, String path, long idHigh, long idLow) {}

  /** Receives what there is; called by any of the threads, by several at once. */
  interface Visitor {

    /** A file with the name of a block, its footer read; may read the rest. */
    void block(BlockInspection inspection);

    /** A file that is no block. */
    default void other(String folder, String name) {}

    /** A folder or a file that cannot be read, which ends the walk if this is not dealt with. */
    default void unreadable(String path, FileException fault) {
      throw new StoreException(
          fault.getMessage() + "; run this as the user that the engines run as", fault);
    }
  }

  private static final int MEMORY_BYTES = 1 << 20;
  private static final ThreadLocal<MemorySegment> MEMORY =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(MEMORY_BYTES, 4096));

  private static final Pattern TEMP =
      Pattern.compile("[0-9a-f]{32}(?:\\.(.+)-[0-9a-f]{10})?\\.tmp");
  private static final Set<String> OWN =
      Set.of(BlockPaths.WRITERS, BlockPaths.QUARANTINE, BlockPaths.GC, BlockPaths.GENERATIONS);

  /**
   * Looks into a directory.
   *
   * @throws StoreException when it is not there, is none, or cannot be read
   */
  static FoundDirectory of(StoreKind kind, FileOperations files, String root) {
    FileStat stat = new FileStat();
    // Through a symbolic link, as for a store that opens it.
    boolean isThere = files.stat(NativePath.of(root + "/."), stat);
    if (!isThere || !stat.isFolder()) {
      throw new StoreException(
          ("there is no directory %s: name one that storage_backends of an engine's configuration"
                  + " names")
              .formatted(root));
    }
    List<String> folders = new ArrayList<>();
    List<String> others = new ArrayList<>();
    boolean isOurs = false;
    for (String name : list(files, root)) {
      if (OWN.contains(name)) {
        isOurs = true;
      } else if (BlockPaths.isFolderName(name)
          && files.stat(NativePath.of(root + "/" + name), stat)
          && stat.isFolder()) {
        folders.add(name);
      } else {
        others.add(name);
      }
    }
    return new FoundDirectory(kind, files, root, folders, isOurs, others);
  }

  private static List<String> list(FileOperations files, String root) {
    try {
      return files.list(NativePath.of(root + "/.")).stream().sorted().toList();
    } catch (FileException e) {
      String advice =
          e.errno() == Errno.EACCES ? "; run this as the user that the engines run as" : "";
      throw new StoreException(
          "cannot read the directory " + root + ": " + e.getMessage() + advice, e);
    }
  }

  /** How many digits a folder's name stands for, as {@code data_dir_shard_bytes} counts them. */
  static int digits(String folder) {
    return folder.equals(BlockPaths.SINGLE_FOLDER) ? 0 : folder.length();
  }

  Set<Integer> digits() {
    Set<Integer> digits = new TreeSet<>();
    folders.forEach(folder -> digits.add(digits(folder)));
    return digits;
  }

  /** Whether a block of this name belongs into a folder: in another one it is not found. */
  static boolean belongs(String folder, String block) {
    return folder.equals(BlockPaths.SINGLE_FOLDER) || block.startsWith(folder);
  }

  /** The file of a block, by its name; null for any other. */
  @Nullable BlockFile block(String folder, String name) {
    if (!BlockPaths.isBlockName(name) || !belongs(folder, name)) {
      return null;
    }
    BlockIds id = BlockIds.ofHex(name);
    return new BlockFile(folder, path(folder, name), id.high(0), id.low(0));
  }

  /** Whether a file is being written, or was, by its name. */
  static boolean isTemp(String name) {
    return TEMP.matcher(name).matches();
  }

  /**
   * How it is with the writer of a file, by its name. One whose lease is gone has ended; files of the original do not
   * tell.
   *
   * @param known of those that were asked for before
   */
  FileLock.Owner writer(String name, Map<String, FileLock.Owner> known) {
    Matcher temp = TEMP.matcher(name);
    String token = temp.matches() ? temp.group(1) : null;
    return token == null
        ? FileLock.Owner.UNKNOWN
        : known.computeIfAbsent(token, one -> FileLock.owner(files, path(BlockPaths.WRITERS, one)));
  }

  /** Shows the names of all files with their folders, until it is stopped. */
  void forEachName(
      Observer observer,
      BiConsumer<String, String> visitor,
      BiConsumer<String, FileException> unreadable) {
    for (String folder : folders) {
      try {
        files.forEachName(
            NativePath.of(path(folder, ".")),
            name -> {
              visitor.accept(folder, name);
              return !observer.isStopped();
            });
      } catch (FileException e) {
        unreadable.accept(path(folder, ""), e);
      }
    }
  }

  /**
   * Inspects each file, until it is stopped.
   *
   * @param role names the threads
   * @param observer may stop it; is told by the visitor
   */
  void walk(String role, int threads, Observer observer, Visitor visitor) {
    try (WorkThreads tasks = new WorkThreads(kind.threads(role), threads)) {
      forEachName(
          observer,
          (folder, name) ->
              tasks.submit(
                  () -> {
                    if (!observer.isStopped()) {
                      inspect(folder, name, visitor);
                    }
                  }),
          visitor::unreadable);
    }
  }

  private void inspect(String folder, String name, Visitor visitor) {
    BlockFile file = block(folder, name);
    boolean isOther = file == null;
    if (file != null) {
      try (@Nullable BlockInspection inspection = BlockInspection.at(files, file, MEMORY.get())) {
        if (inspection != null) {
          visitor.block(inspection);
        } else {
          isOther = files.size(NativePath.of(file.path())) == FileOperations.OTHER_TYPE;
        }
      } catch (FileException e) {
        visitor.unreadable(file.path(), e);
      }
    }
    if (isOther) {
      visitor.other(folder, name);
    }
  }

  String path(String folder, String name) {
    return root + "/" + folder + "/" + name;
  }
}
