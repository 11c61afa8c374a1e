package ucm.store.file.config;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;

/**
 * Makes the threads of an executor, named {@code ucm-<store>-<role>-<n>}, and waits for their end: an
 * executor has ended a moment before its threads have. Thread-safe.
 */
public final class OwnThreads implements ThreadFactory {

  private final StoreKind kind;
  private final String role;

  // Guarded by this; those that have ended are dropped when one is made.
  private final List<Thread> threads = new ArrayList<>();
  private int made;

  public OwnThreads(StoreKind kind, String role) {
    this.kind = kind;
    this.role = role;
  }

  @Override
  public synchronized Thread newThread(Runnable work) {
    threads.removeIf(thread -> thread.getState() == Thread.State.TERMINATED);
    Thread thread = kind.newThread(role, made++).unstarted(work);
    threads.add(thread);
    return thread;
  }

  /**
   * Waits until all have ended, for no longer than some time.
   *
   * @return false when one still runs, or the caller was interrupted (its flag is set again)
   */
  public boolean join(Duration timeout) {
    long deadline = System.nanoTime() + timeout.toNanos();
    try {
      for (Thread thread : all()) {
        // One that an executor could not start has no end.
        if (thread.getState() != Thread.State.NEW
            && !thread.join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())))) {
          return false;
        }
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private synchronized List<Thread> all() {
    return List.copyOf(threads);
  }
}
