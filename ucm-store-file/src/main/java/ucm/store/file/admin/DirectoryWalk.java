package ucm.store.file.admin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.FileTasks;

/** Goes through the folders of a found directory and inspects each file, with several threads. */
final class DirectoryWalk {

  /** Receives what there is; called by any of the threads, but by one at a time. */
  interface Visitor {

    /** A file of a block, its footer read; may read no further. */
    void block(BlockFile file, BlockInspection inspection);

    /** A file that is no block. */
    default void other(String folder, String name) {}

    /** A folder or a file that cannot be read. */
    default void unreadable(String path, FileException fault) {}

    /** A folder begins. */
    default void folder(String folder) {}
  }

  private static final int MEMORY_BYTES = 1 << 20;

  private static final ThreadLocal<MemorySegment> MEMORY =
      ThreadLocal.withInitial(() -> Arena.ofAuto().allocate(MEMORY_BYTES, 4096));

  private final StoreKind kind;
  private final FileOperations files;
  private final int threads;
  private final Observer observer;
  private final AtomicLong seen = new AtomicLong();

  DirectoryWalk(StoreKind kind, FileOperations files, int threads, Observer observer) {
    this.kind = kind;
    this.files = files;
    this.threads = threads;
    this.observer = observer;
  }

  /** Stops the work as the other does, and reports nothing: for a part of the work that is not told. */
  static Observer quiet(Observer observer) {
    return new Observer() {
      @Override
      public void at(long done, long total) {}

      @Override
      public boolean isStopped() {
        return observer.isStopped();
      }
    };
  }

  /** Shows all of a directory. */
  void run(FoundDirectory directory, Visitor visitor) {
    each(
        "inspect",
        directory,
        visitor,
        (file, inspection) -> {
          synchronized (visitor) {
            visitor.block(file, inspection);
            observer.at(seen.incrementAndGet(), 0);
          }
        });
  }

  /**
   * Works on each file with the name of a block, with several threads at a time.
   *
   * @param work may read the file
   * @param unreadable gets folders and files that cannot be read
   */
  void eachBlock(
      String role,
      FoundDirectory directory,
      BiConsumer<BlockFile, BlockInspection> work,
      BiConsumer<String, FileException> unreadable) {
    Visitor others =
        new Visitor() {
          @Override
          public void block(BlockFile file, BlockInspection inspection) {}

          @Override
          public void unreadable(String path, FileException fault) {
            unreadable.accept(path, fault);
          }
        };
    each(role, directory, others, work);
  }

  private void each(
      String role,
      FoundDirectory directory,
      Visitor visitor,
      BiConsumer<BlockFile, BlockInspection> work) {
    try (FileTasks tasks = new FileTasks(kind, role, threads)) {
      for (String folder : directory.folders()) {
        synchronized (visitor) {
          visitor.folder(folder);
        }
        try {
          files.forEachName(
              NativePath.of(directory.path(folder, ".")),
              name -> {
                tasks.submit(() -> inspect(directory, folder, name, visitor, work));
                return !observer.isStopped();
              });
        } catch (FileException e) {
          unreadable(visitor, directory.path(folder, ""), e);
        }
      }
    }
  }

  private void inspect(
      FoundDirectory directory,
      String folder,
      String name,
      Visitor visitor,
      BiConsumer<BlockFile, BlockInspection> work) {
    if (observer.isStopped()) {
      return;
    }
    BlockFile file = directory.block(folder, name);
    boolean isOther = file == null;
    if (file != null) {
      try (@Nullable BlockInspection inspection = BlockInspection.at(files, file, MEMORY.get())) {
        if (inspection != null) {
          work.accept(file, inspection);
        } else {
          isOther = files.size(NativePath.of(file.path())) == FileOperations.OTHER_TYPE;
        }
      } catch (FileException e) {
        unreadable(visitor, file.path(), e);
      }
    }
    if (isOther) {
      synchronized (visitor) {
        visitor.other(folder, name);
      }
    }
  }

  private static void unreadable(Visitor visitor, String path, FileException fault) {
    synchronized (visitor) {
      visitor.unreadable(path, fault);
    }
  }
}
