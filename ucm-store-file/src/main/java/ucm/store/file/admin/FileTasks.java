package ucm.store.file.admin;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.store.file.config.StoreKind;

/**
 * Threads that work on files while these are listed. Few files wait: a caller that hands in more does the
 * work himself.
 */
final class FileTasks implements AutoCloseable {

  private static final int WAITING_PER_THREAD = 16;

  private final ThreadPoolExecutor threads;
  private final AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();

  /**
   * Starts no thread yet.
   *
   * @param role names the threads: {@code ucm-<store>-<role>-<n>}
   */
  FileTasks(StoreKind kind, String role, int count) {
    AtomicInteger number = new AtomicInteger();
    threads =
        new ThreadPoolExecutor(
            count,
            count,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(WAITING_PER_THREAD * count),
            task ->
                Thread.ofPlatform()
                    .daemon()
                    .name(kind.thread(role, number.getAndIncrement()))
                    .unstarted(task),
            new ThreadPoolExecutor.CallerRunsPolicy());
  }

  /** Hands in the work on one file. After one that threw, nothing more is done. */
  void submit(Runnable task) {
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
    try {
      while (!threads.awaitTermination(1, TimeUnit.DAYS)) {
        // Reading a large directory takes as long as it takes.
      }
    } catch (InterruptedException e) {
      threads.shutdownNow();
      Thread.currentThread().interrupt();
      throw new StoreException("the work on the files was interrupted", e);
    }
    RuntimeException first = fault.get();
    if (first != null) {
      throw first;
    }
  }
}
