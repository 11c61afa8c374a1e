package ucm.store.file.block;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import ucm.store.file.config.StoreKind;

/**
 * Cleans up files that no caller waits for, on a thread of its own: temporary files of
 * blocks that were given up are removed, files that are no longer read are closed. Those who find
 * out check timeouts or wait for a flush, and must not wait for a file system that hangs. The
 * thread is started when there is something to do, and sleeps when there is nothing. Bounded: a thread that
 * finds it full comes back later. Thread-safe.
 */
public final class DeferredCleanup implements AutoCloseable {

  private static final int MOST_WAITING = PartialBlocks.MAX_BLOCKS;

  private final StoreKind kind;

  // Guarded by this.
  private final Deque<Runnable> waiting = new ArrayDeque<>();
  private boolean closed;
  private @Nullable Thread thread;

  public DeferredCleanup(StoreKind kind) {
    this.kind = kind;
  }

  /** Whether it accepts no more for now. */
  synchronized boolean isFull() {
    return waiting.size() >= MOST_WAITING;
  }

  /**
   * Queues an action; returns at once, but runs it first when this is closed.
   *
   * @param action must not throw
   */
  void add(Runnable action) {
    if (!isTakenUp(action)) {
      action.run();
    }
  }

  private synchronized boolean isTakenUp(Runnable action) {
    if (closed) {
      return false;
    }
    waiting.add(action);
    if (thread == null) {
      thread = kind.newThread("cleanup", 0).start(this::run);
    }
    notifyAll();
    return true;
  }

  private void run() {
    for (Runnable action = next(); action != null; action = next()) {
      action.run();
    }
  }

  private synchronized @Nullable Runnable next() {
    boolean interrupted = false;
    while (waiting.isEmpty() && !closed) {
      try {
        wait();
      } catch (InterruptedException e) {
        // Close does not interrupt this thread.
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return waiting.poll();
  }

  /** Waits until everything is done, and the thread has ended. */
  @Override
  public void close() {
    Thread running;
    synchronized (this) {
      closed = true;
      running = thread;
      notifyAll();
    }
    try {
      if (running != null) {
        running.join();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
