package ucm.store.file.admin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;

/** Goes through the folders of a found directory and inspects each file, with several threads. */
final class DirectoryWalk {

  /** Receives what there is, one thing at a time. */
  interface Visitor {

    /** A file of a block. Called by any of the threads, but by one at a time; may read no further. */
    void block(String folder, String name, BlockInspection inspection);

    /** A file that is no block. */
    void other(String folder, String name, FileKind kind);

    /** A folder or a file that cannot be read. */
    void unreadable(String path, FileException fault);

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

  /** Memory of the calling thread to read through. */
  static MemorySegment memory() {
    return MEMORY.get();
  }

  /** Whether a thread should end. */
  boolean isStopped() {
    return observer.isStopped();
  }

  /** Shows all of a directory. */
  void run(FoundDirectory directory, Visitor visitor) {
    each(
        "inspect",
        directory,
        folder -> {
          synchronized (visitor) {
            visitor.folder(folder);
          }
        },
        (folder, name) -> inspect(directory, folder, name, visitor),
        (path, fault) -> {
          synchronized (visitor) {
            visitor.unreadable(path, fault);
          }
        });
  }

  /**
   * Works on each file with the name of a block, with several threads at a time.
   *
   * @param work gets folder and name
   * @param unreadable gets folders that cannot be read
   */
  void eachBlock(
      String role,
      FoundDirectory directory,
      BiConsumer<String, String> work,
      BiConsumer<String, FileException> unreadable) {
    each(
        role,
        directory,
        folder -> {},
        (folder, name) -> {
          if (!isStopped() && FileKind.of(folder, name).role() == FileKind.Role.BLOCK) {
            work.accept(folder, name);
          }
        },
        unreadable);
  }

  private void each(
      String role,
      FoundDirectory directory,
      Consumer<String> begin,
      BiConsumer<String, String> work,
      BiConsumer<String, FileException> unreadable) {
    try (FileTasks tasks = new FileTasks(kind, role, threads)) {
      for (String folder : directory.folders()) {
        begin.accept(folder);
        try {
          files.forEachName(
              NativePath.of(directory.path(folder, ".")),
              name -> {
                tasks.submit(() -> work.accept(folder, name));
                return !isStopped();
              });
        } catch (FileException e) {
          unreadable.accept(directory.path(folder, ""), e);
        }
      }
    }
  }

  private void inspect(FoundDirectory directory, String folder, String name, Visitor visitor) {
    if (isStopped()) {
      return;
    }
    FileKind kind = FileKind.of(folder, name);
    if (kind.role() != FileKind.Role.BLOCK) {
      synchronized (visitor) {
        visitor.other(folder, name, kind);
      }
      return;
    }
    String path = directory.path(folder, name);
    BlockIds id = BlockIds.ofHex(name);
    try (@Nullable BlockInspection inspection =
        BlockInspection.at(files, path, id.high(0), id.low(0), MEMORY.get())) {
      synchronized (visitor) {
        if (inspection != null) {
          visitor.block(folder, name, inspection);
        } else if (files.size(NativePath.of(path)) == FileOperations.OTHER_TYPE) {
          visitor.other(folder, name, new FileKind(FileKind.Role.OTHER, null));
        }
        observer.at(seen.incrementAndGet(), 0);
      }
    } catch (FileException e) {
      synchronized (visitor) {
        visitor.unreadable(path, e);
      }
    }
  }
}
