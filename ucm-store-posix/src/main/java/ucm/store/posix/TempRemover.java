package ucm.store.posix;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Removes the temporary files of blocks that were given up, on a thread of its own: those who find out
 * that a block is due look after deadlines or wait for a flush, and must not wait for a file system
 * that hangs. The thread is started when there is something to remove, and sleeps when there is
 * nothing. Bounded: whoever finds it full gives the block up later. Thread-safe.
 */
final class TempRemover implements AutoCloseable {

  private static final int MOST_WAITING = PartialBlocks.MAX_BLOCKS;

  private final Consumer<PartialBlock> remove;

  // Guarded by this.
  private final Deque<PartialBlock> waiting = new ArrayDeque<>();
  private boolean closed;
  private @Nullable Thread thread;

  /**
   * Starts no thread yet.
   *
   * @param remove removes one file; must not throw
   */
  TempRemover(Consumer<PartialBlock> remove) {
    this.remove = remove;
  }

  /** Whether it takes up no more for now. */
  synchronized boolean isFull() {
    return waiting.size() >= MOST_WAITING;
  }

  /** Takes up a block whose file is to be removed; returns at once. */
  synchronized void add(PartialBlock partial) {
    waiting.add(partial);
    if (thread == null) {
      thread = Thread.ofPlatform().daemon().name("ucm-posix-remove-0").start(this::run);
    }
    notifyAll();
  }

  private void run() {
    for (PartialBlock partial = next(); partial != null; partial = next()) {
      remove.accept(partial);
    }
  }

  private synchronized @Nullable PartialBlock next() {
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

  /** Waits until all files are removed, and the thread has ended. */
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
