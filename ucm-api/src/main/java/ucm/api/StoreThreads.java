package ucm.api;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;

/** Makes threads for a store, by role, and waits for their end. Thread-safe. */
final class StoreThreads {

  private static final Duration END = Duration.ofSeconds(5);

  private final String prefix;
  // Guarded by this, as is what follows.
  private final List<Thread> threads = new ArrayList<>();
  private final List<ExecutorService> workers = new ArrayList<>();

  /** Has no threads yet. */
  StoreThreads(String store) {
    this.prefix = "ucm-" + store.toLowerCase(Locale.ROOT) + "-";
  }

  /**
   * Makes threads that end by themselves.
   *
   * @param faults is told of a thread that ends by an error
   */
  ThreadFactory factory(String role, Thread.UncaughtExceptionHandler faults) {
    ThreadFactory named =
        Thread.ofPlatform()
            .daemon()
            .name(prefix + role + "-", 0)
            .uncaughtExceptionHandler(faults)
            .factory();
    return work -> note(named.newThread(work));
  }

  private synchronized Thread note(Thread thread) {
    threads.add(thread);
    return thread;
  }

  /** Makes threads that run what they are given until {@link #end}, and then the rest of it. */
  synchronized ExecutorService workers(
      String role, int count, Thread.UncaughtExceptionHandler faults) {
    ExecutorService made = Executors.newFixedThreadPool(count, factory(role, faults));
    workers.add(made);
    return made;
  }

  /**
   * Has the workers end, and waits for all threads but the calling one. An interrupt is kept for later.
   *
   * @param patience how long to wait, unless that is less than what ends on a busy machine
   */
  void end(Duration patience) {
    List<Thread> ending;
    synchronized (this) {
      workers.forEach(ExecutorService::shutdown);
      ending = new ArrayList<>(threads);
    }
    ending.remove(Thread.currentThread());
    long end = System.nanoTime() + Math.max(END.toNanos(), patience.toNanos());
    boolean interrupted = false;
    for (Thread thread : ending) {
      while (thread.isAlive() && end - System.nanoTime() > 0) {
        try {
          thread.join(Duration.ofNanos(Math.max(1, end - System.nanoTime())));
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Closes a store one of whose threads ended, on another thread, as closing joins them, and without
   * waiting for tasks, as they may never end.
   */
  static void close(AbstractStore store, Thread ended, Throwable fault) {
    // First of all: to log takes memory.
    try {
      Thread.ofPlatform()
          .daemon()
          .name(ended.getName() + "-fault")
          .start(
              () -> {
                Thread.currentThread().interrupt();
                store.close();
              });
    } finally {
      System.getLogger(AbstractStore.class.getName())
          .log(
              System.Logger.Level.ERROR,
              store.name() + " is closed, because its thread " + ended.getName() + " ended",
              fault);
    }
  }
}
