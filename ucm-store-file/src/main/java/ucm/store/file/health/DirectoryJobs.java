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
 * Something that is to be done once on each directory, by a thread for each, so that one that hangs
 * holds up no other. Where it fails, or the breaker is open, it is done again when the directory is found
 * to work again; the thread sleeps until then.
 */
public final class DirectoryJobs {

  /** What is to be done. */
  public interface Job {

    /**
     * Does it on one directory. Ends early when the directory is down.
     *
     * @return whether nothing of it is left to do
     */
    boolean run(int directory);
  }

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryJobs.class);

  private final StoreKind kind;
  private final String what;
  private final DirectoryHealth health;
  private final Job job;
  private final List<Thread> threads = new ArrayList<>();

  // Guarded by this. Recoveries of each directory, and whether its thread has something to do.
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
      StoreKind kind, String role, String what, int directories, DirectoryHealth health, Job job) {
    this.kind = kind;
    this.what = what;
    this.health = health;
    this.job = job;
    recoveries = new int[directories];
    busy = new boolean[directories];
    for (int i = 0; i < directories; i++) {
      int directory = i;
      threads.add(kind.newThread(role, i).unstarted(() -> serve(directory)));
    }
  }

  /** Begins. */
  public synchronized void start() {
    Arrays.fill(busy, true);
    threads.forEach(Thread::start);
  }

  /** A directory works again. */
  public synchronized void recovered(int directory) {
    recoveries[directory]++;
    notifyAll();
  }

  private void serve(int directory) {
    try {
      int before = recovery(directory);
      while (awaitUsable(directory) && !done(directory)) {
        before = awaitRecovery(directory, before);
      }
    } catch (InterruptedException e) {
      // Only close interrupts this thread.
      Thread.currentThread().interrupt();
    } finally {
      setBusy(directory, false);
    }
  }

  private boolean done(int directory) {
    try {
      return job.run(directory);
    } catch (RuntimeException e) {
      LOG.warn("{}: {} failed, and is made up for later: {}", kind.name(), what, e.getMessage());
      health.failedInBackground(directory, e);
      return false;
    }
  }

  private synchronized int recovery(int directory) {
    return recoveries[directory];
  }

  private synchronized boolean awaitUsable(int directory) throws InterruptedException {
    @Nullable StoreException refusal = health.refusal(directory);
    while (!stopped && refusal != null) {
      setBusy(directory, false);
      wait();
      refusal = health.refusal(directory);
    }
    setBusy(directory, true);
    return !stopped;
  }

  private synchronized int awaitRecovery(int directory, int before) throws InterruptedException {
    while (!stopped && recoveries[directory] == before) {
      setBusy(directory, false);
      wait();
    }
    setBusy(directory, true);
    return recoveries[directory];
  }

  private synchronized void setBusy(int directory, boolean isBusy) {
    if (busy[directory] != isBusy) {
      busy[directory] = isBusy;
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

  /** Lets the threads end at their next check. */
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
