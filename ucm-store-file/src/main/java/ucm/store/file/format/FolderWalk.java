package ucm.store.file.format;

import java.util.List;
import java.util.function.Consumer;
import ucm.store.file.config.StoreKind;

/**
 * Goes through folders with several threads, which end with the walk. More than one pays where a call
 * waits for a file server; small trees get one.
 */
public final class FolderWalk {

  // Fewer folders than this are not worth a thread.
  private static final int FOLDERS_PER_THREAD = 64;

  private final StoreKind kind;
  private final int concurrency;
  private volatile boolean stopped;

  public FolderWalk(StoreKind kind, int concurrency) {
    this.kind = kind;
    this.concurrency = concurrency;
  }

  /** Ends walks soon, this one and later ones. */
  public void stop() {
    stopped = true;
  }

  public boolean isStopped() {
    return stopped;
  }

  /**
   * Shows each folder to the action, in any order, and returns when all are done.
   *
   * @throws RuntimeException the first that the action threw; the walk ends then
   */
  public void forEach(List<Folder> folders, Consumer<Folder> action) {
    int threads = Math.min(concurrency, folders.size() / FOLDERS_PER_THREAD);
    if (threads == 0) {
      folders.forEach(folder -> visit(folder, action));
      return;
    }
    // The calling thread works as well while more are listed than the threads take.
    try (FileTasks tasks = new FileTasks(kind, "walk", threads)) {
      folders.forEach(folder -> tasks.submit(() -> visit(folder, action)));
    }
  }

  private void visit(Folder folder, Consumer<Folder> action) {
    if (!stopped) {
      action.accept(folder);
    }
  }
}
