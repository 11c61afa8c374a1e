package ucm.store.file.block;

import java.time.Duration;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.StoreKind;

/**
 * Cleans up files that no caller waits for, on a thread of its own: temporary files of
 * blocks that were given up are removed, files that are no longer read are closed. Those who find
 * out check timeouts or wait for a flush, and must not wait for a file system that hangs. The
 * thread is started when there is something to do, and sleeps when there is nothing. Bounded: a thread that
 * finds it full comes back later. Thread-safe.
 */
public final class DeferredCleanup implements AutoCloseable {

  private static final int MOST_WAITING = BlockWriter.MAX_BLOCKS;

  private final OwnThreads own;
  private final ThreadPoolExecutor thread;

  public DeferredCleanup(StoreKind kind) {
    own = kind.threads("cleanup");
    thread =
        new ThreadPoolExecutor(
            1,
            1,
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            own,
            (action, _) -> action.run());
  }

  /** Whether it accepts no more for now. */
  boolean isFull() {
    return thread.getQueue().size() >= MOST_WAITING;
  }

  /**
   * Queues an action; returns at once, but runs it first when this is closed.
   *
   * @param action must not throw
   */
  void add(Runnable action) {
    thread.execute(action);
  }

  /** Waits until everything is done, and the thread has ended. */
  @Override
  public void close() {
    thread.shutdown();
    // A file system that hangs may take as long as it takes.
    own.join(Duration.ofDays(365));
  }
}
