package ucm.store.file.format;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.FolderTree.Folder;

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
    AtomicInteger next = new AtomicInteger();
    AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();
    Runnable part =
        () -> {
          int i = next.getAndIncrement();
          while (i < folders.size() && !stopped && fault.get() == null) {
            try {
              action.accept(folders.get(i));
            } catch (RuntimeException e) {
              fault.compareAndSet(null, e);
            }
            i = next.getAndIncrement();
          }
        };
    List<Thread> helpers = new ArrayList<>();
    int threads = Math.min(concurrency, 1 + folders.size() / FOLDERS_PER_THREAD);
    for (int i = 1; i < threads; i++) {
      helpers.add(kind.newThread("gc", i).start(part));
    }
    part.run();
    join(helpers);
    RuntimeException first = fault.get();
    if (first != null) {
      throw first;
    }
  }

  private void join(List<Thread> helpers) {
    boolean interrupted = false;
    for (Thread helper : helpers) {
      while (helper.isAlive()) {
        try {
          helper.join();
        } catch (InterruptedException e) {
          interrupted = true;
          stopped = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
