package ucm.store.file.health;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.store.file.config.StoreKind;

/**
 * Something that is to be done once on each backend, by a thread for each, so that one that hangs
 * holds up no other. Where it fails, or the breaker is open, it is done again when the backend is found
 * to work again; the thread sleeps until then.
 */
public final class DirectoryJobs {

  /** What is to be done. */
  public interface Errand {

    /**
     * Does it on one backend. Ends early when the backend is down.
     *
     * @return whether nothing of it is left to do
     */
    boolean run(int backend);
  }

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryJobs.class);

  private final StoreKind kind;
  private final String what;
  private final DirectoryHealth health;
  private final Errand errand;
  private final List<Thread> threads = new ArrayList<>();

  // Guarded by this. Recoveries of each backend, and whether its thread has something to do.
  private final int[] recoveries;
  private final boolean[] busy;
  private boolean stopped;

  /**
   * Starts no thread yet.
   *
   * @param role names the threads: {@code ucm-<store>-<role>-<n>}
   * @param what names it in messages
   */
  public DirectoryJobs(
      StoreKind kind,
      String role,
      String what,
      int backends,
      DirectoryHealth health,
      Errand errand) {
    this.kind = kind;
    this.what = what;
    this.health = health;
    this.errand = errand;
    recoveries = new int[backends];
    busy = new boolean[backends];
    for (int i = 0; i < backends; i++) {
      int backend = i;
      threads.add(kind.newThread(role, i).unstarted(() -> serve(backend)));
    }
  }

  /** Begins. */
  public synchronized void start() {
    Arrays.fill(busy, true);
    threads.forEach(Thread::start);
  }

  /** A backend works again. */
  public synchronized void recovered(int backend) {
    recoveries[backend]++;
    notifyAll();
  }

  private void serve(int backend) {
    try {
      int before = recovery(backend);
      while (awaitUsable(backend) && !done(backend)) {
        before = awaitRecovery(backend, before);
      }
    } catch (InterruptedException e) {
      // Nobody interrupts this thread but to end it.
      Thread.currentThread().interrupt();
    } finally {
      setBusy(backend, false);
    }
  }

  private boolean done(int backend) {
    try {
      return errand.run(backend);
    } catch (RuntimeException e) {
      LOG.warn("{}: {} failed, and is made up for later: {}", kind.name(), what, e.getMessage());
      health.failedInBackground(backend, e);
      return false;
    }
  }

  private synchronized int recovery(int backend) {
    return recoveries[backend];
  }

  private synchronized boolean awaitUsable(int backend) throws InterruptedException {
    @Nullable StoreException refusal = health.refusal(backend);
    while (!stopped && refusal != null) {
      setBusy(backend, false);
      wait();
      refusal = health.refusal(backend);
    }
    setBusy(backend, true);
    return !stopped;
  }

  private synchronized int awaitRecovery(int backend, int before) throws InterruptedException {
    while (!stopped && recoveries[backend] == before) {
      setBusy(backend, false);
      wait();
    }
    setBusy(backend, true);
    return recoveries[backend];
  }

  private synchronized void setBusy(int backend, boolean isBusy) {
    if (busy[backend] != isBusy) {
      busy[backend] = isBusy;
      notifyAll();
    }
  }

  /** Waits until each thread has done it, or sleeps. */
  public synchronized void await() throws InterruptedException {
    boolean any = true;
    while (any) {
      any = false;
      for (boolean each : busy) {
        any |= each;
      }
      if (any) {
        wait();
      }
    }
  }

  /** Lets the threads end when they next look. */
  public synchronized void stop() {
    stopped = true;
    notifyAll();
  }

  /** Waits for the threads, after {@link #stop}, for as long as that takes. */
  public void join() {
    try {
      for (Thread thread : threads) {
        // Not every store starts its threads.
        if (thread.getState() != Thread.State.NEW) {
          thread.join();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
