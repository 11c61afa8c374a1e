package ucm.api;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The life of a store as a small state machine: NEW, CONFIGURED, OPEN, CLOSED.
 *
 * <p>A store has one of these and tells it of each step; the wrong order is answered with an {@link
 * IllegalStateException}, use after close with {@link StoreClosedException}, both naming store and
 * state. Thread-safe.
 */
public final class StoreLife {

  private enum State {
    NEW,
    CONFIGURED,
    OPEN,
    CLOSED
  }

  private final String storeName;
  private final AtomicReference<State> state = new AtomicReference<>(State.NEW);

  /**
   * Starts in state NEW.
   *
   * @param storeName what messages call the store, for example {@code Posix}
   */
  public StoreLife(String storeName) {
    this.storeName = storeName;
  }

  /** See {@link Store#name}. */
  static String nameOf(Class<?> store) {
    StoreName name = store.getAnnotation(StoreName.class);
    if (name == null) {
      throw new IllegalStateException(
          store.getName() + " has no @StoreName, so it has no name: add the annotation");
    }
    return name.value();
  }

  /** NEW to CONFIGURED; called at the start of {@link Store#configure}. */
  public void configured() {
    step(State.NEW, State.CONFIGURED, "configure");
  }

  /** CONFIGURED to OPEN; called at the start of {@link Store#open}. */
  public void opened() {
    step(State.CONFIGURED, State.OPEN, "open");
  }

  /**
   * Any state to CLOSED; called at the start of {@link Store#close}.
   *
   * @return whether the store was open, so that there is something to release; true at most once
   */
  public boolean closed() {
    return state.getAndSet(State.CLOSED) == State.OPEN;
  }

  /** Whether the store is open now. */
  public boolean isOpen() {
    return state.getAcquire() == State.OPEN;
  }

  /**
   * Called first by every operation.
   *
   * @throws StoreClosedException when closed
   * @throws IllegalStateException when not opened yet
   */
  public void requireOpen() {
    State now = state.getAcquire();
    if (now == State.OPEN) {
      return;
    }
    if (now == State.CLOSED) {
      throw new StoreClosedException(storeName);
    }
    throw new IllegalStateException(
        "Store " + storeName + " is " + now + ", not OPEN: call configure, then open, before use");
  }

  private void step(State from, State to, String call) {
    State found = state.compareAndExchange(from, to);
    if (found != from) {
      throw new IllegalStateException(
          "Store " + storeName + " is " + found + ": " + call + " is allowed only when " + from);
    }
  }

  @Override
  public String toString() {
    return storeName + "[" + state.get() + "]";
  }

  /** Makes threads for a store, by role, and waits for their end. Thread-safe. */
  static final class Threads {

    /** What ends on a busy machine has ended by then. */
    static final Duration END = Duration.ofSeconds(5);

    private final String prefix;
    private final Duration atLeast;
    // Guarded by this, as is what follows.
    private final List<Thread> threads = new ArrayList<>();
    private final List<ExecutorService> workers = new ArrayList<>();

    /**
     * Makes threads of a store.
     *
     * @param atLeast how long {@link #end} waits for one that does not end
     */
    Threads(String store, Duration atLeast) {
      this.atLeast = atLeast;
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
     * @param patience how long to wait, where that is more than the least
     */
    void end(Duration patience) {
      List<Thread> ending;
      synchronized (this) {
        workers.forEach(ExecutorService::shutdown);
        ending = new ArrayList<>(threads);
      }
      ending.remove(Thread.currentThread());
      long end = System.nanoTime() + Math.max(atLeast.toNanos(), patience.toNanos());
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
                  try {
                    store.close();
                  } catch (RuntimeException e) {
                    store.logFailure(store.name() + " failed to close", e);
                  }
                });
      } finally {
        store.logFailure(
            store.name()
                + ": thread "
                + ended.getName()
                + " ended by "
                + fault
                + "; the store is closed: what is open fails, and nothing more is accepted",
            fault);
      }
    }
  }
}
