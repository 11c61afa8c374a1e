package ucm.store.file.format;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.StoreKind;

/**
 * Threads that work on files while these are listed. Few files wait: a caller that hands in more does the
 * work himself.
 */
public final class FileTasks implements AutoCloseable {

  private static final int WAITING_PER_THREAD = 16;
  // Fewer folders than this are not worth a thread.
  private static final int FOLDERS_PER_THREAD = 64;

  private final OwnThreads own;
  private final ThreadPoolExecutor threads;
  private final AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();

  /**
   * Starts no thread yet.
   *
   * @param role names the threads: {@code ucm-<store>-<role>-<n>}
   */
  public FileTasks(StoreKind kind, String role, int count) {
    own = kind.threads(role);
    threads =
        new ThreadPoolExecutor(
            count,
            count,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(WAITING_PER_THREAD * count),
            own,
            new ThreadPoolExecutor.CallerRunsPolicy());
  }

  /**
   * Shows each folder to an action, in any order, and returns when all are done. More than one thread pays where a
   * call waits for a file server; small trees get one.
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
    try (FileTasks tasks = new FileTasks(kind, "walk", threads)) {
      folders.forEach(folder -> tasks.submit(() -> action.accept(folder)));
    }
  }

  /** Hands in the work on one file. After one that threw, nothing more is done. */
  public void submit(Runnable task) {
    threads.execute(
        () -> {
          if (fault.get() == null) {
            try {
              task.run();
            } catch (RuntimeException e) {
              fault.compareAndSet(null, e);
            } catch (Error e) {
              // Only close would report it.
              fault.compareAndSet(null, new StoreException("the work on the files broke: " + e, e));
            }
          }
        });
  }

  /**
   * Waits until all is done and the threads have ended.
   *
   * @throws RuntimeException the first that a task threw; of an error, a {@link StoreException}
   */
  @Override
  public void close() {
    threads.shutdown();
    // Reading a large directory takes as long as it takes.
    if (!own.join(Duration.ofDays(365))) {
      threads.shutdownNow();
      throw new StoreException("the work on the files was interrupted");
    }
    RuntimeException first = fault.get();
    if (first != null) {
      throw first;
    }
  }
}
