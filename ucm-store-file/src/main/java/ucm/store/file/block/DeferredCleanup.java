package ucm.store.file.block;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import ucm.store.file.config.StoreKind;

/**
 * What is to be done with files that nobody waits for, on a thread of its own: temporary files of
 * blocks that were given up are removed, files that nobody reads any more are closed. Those who find
 * out look after deadlines or wait for a flush, and must not wait for a file system that hangs. The
 * thread is started when there is something to do, and sleeps when there is nothing. Bounded: whoever
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

  /** Whether it takes up no more for now. */
  synchronized boolean isFull() {
    return waiting.size() >= MOST_WAITING;
  }

  /**
   * Takes up a chore; returns at once, but does it first when this is closed.
   *
   * @param chore must not throw
   */
  void add(Runnable chore) {
    if (!isTakenUp(chore)) {
      chore.run();
    }
  }

  private synchronized boolean isTakenUp(Runnable chore) {
    if (closed) {
      return false;
    }
    waiting.add(chore);
    if (thread == null) {
      thread = kind.newThread("chores", 0).start(this::run);
    }
    notifyAll();
    return true;
  }

  private void run() {
    for (Runnable chore = next(); chore != null; chore = next()) {
      chore.run();
    }
  }

  private synchronized @Nullable Runnable next() {
    boolean interrupted = false;
    while (waiting.isEmpty() && !closed) {
      try {
        wait();
      } catch (InterruptedException e) {
        // Nobody interrupts this thread to end it.
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
