package ucm.platform.thread;

import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;

/**
 * Threads that work on files, or blocks, while these are listed. Few wait: a caller that hands in more does the
 * work himself.
 */
public final class WorkThreads implements AutoCloseable {

  private static final int WAITING_PER_THREAD = 16;

  private final OwnThreads own;
  private final ThreadPoolExecutor threads;
  private final AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();

  /**
   * Starts no thread yet.
   *
   * @param own makes them, for this alone
   * @param count how many, beside the caller
   */
  public WorkThreads(OwnThreads own, int count) {
    this.own = own;
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
   * Does some work on each of some things, until it is stopped.
   *
   * @param count threads, beside the caller
   * @throws RuntimeException the first that was thrown, which ends it; of an error, a {@link StoreException}
   */
  public static <T> void forEach(
      OwnThreads own, int count, List<T> all, BooleanSupplier stopped, Consumer<T> work) {
    try (WorkThreads threads = new WorkThreads(own, count)) {
      for (int i = 0; i < all.size() && !stopped.getAsBoolean(); i++) {
        T one = all.get(i);
        threads.submit(
            () -> {
              if (!stopped.getAsBoolean()) {
                work.accept(one);
              }
            });
      }
    }
  }

  /** Hands in some work. After one that threw, nothing more is done. */
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
              fault.compareAndSet(null, new StoreException("the work broke: " + e, e));
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
    var _ = own.join(ThreadEnd.FOREVER);
    RuntimeException first = fault.get();
    if (first != null) {
      throw first;
    }
  }
}
