package ucm.store.file.admin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.thread.WorkThreads;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.config.StoreKind;

/**
 * Goes through the folders of found directories, one directory after the other, and inspects each file.
 *
 * @param threads how many work on the files of a directory
 * @param observer may stop it; is told by the visitors
 */
record DirectoryWalk(StoreKind kind, FileOperations files, int threads, Observer observer) {

  /** Receives what there is; called by any of the threads, by several at once. */
  interface Visitor {

    /** A file with the name of a block, its footer read; may read the rest. */
    void block(BlockFile file, BlockInspection inspection);

    /** A file that is no block. */
    default void other(String folder, String name) {}

    /** A folder or a file that cannot be read. */
    default void unreadable(String path, FileException fault) {}
  }

  private static final int MEMORY_BYTES = 1 << 20;

  private static final ThreadLocal<MemorySegment> MEMORY =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(MEMORY_BYTES, 4096));

  /**
   * Shows all of a directory.
   *
   * @param role names the threads
   */
  void run(String role, FoundDirectory directory, Visitor visitor) {
    try (WorkThreads tasks = new WorkThreads(kind.threads(role), threads)) {
      for (String folder : directory.folders()) {
        try {
          files.forEachName(
              NativePath.of(directory.path(folder, ".")),
              name -> {
                tasks.submit(() -> inspect(directory, folder, name, visitor));
                return !observer.isStopped();
              });
        } catch (FileException e) {
          visitor.unreadable(directory.path(folder, ""), e);
        }
      }
    }
  }

  private void inspect(FoundDirectory directory, String folder, String name, Visitor visitor) {
    if (observer.isStopped()) {
      return;
    }
    BlockFile file = directory.block(folder, name);
    boolean isOther = file == null;
    if (file != null) {
      try (@Nullable BlockInspection inspection = BlockInspection.at(files, file, MEMORY.get())) {
        if (inspection != null) {
          visitor.block(file, inspection);
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
}
