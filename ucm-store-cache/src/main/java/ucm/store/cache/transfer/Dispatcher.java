package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.thread.ThreadEnd;

/**
 * The background thread of the store: it asks the next stage what it has, tries again for tasks that found
 * no slot, in order of arrival, and hands background writes to the next stage. It sleeps when there is
 * nothing to do.
 *
 * <p>The number of jobs is bounded by the tasks that are admitted.
 */
final class Dispatcher {

  private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);

  // Soon, and not at once: what throws each time does not take a processor.
  private static final long AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final CacheRuntime cache;
  private final Thread thread;
  // Guarded by this, which is notified of changes, as is what follows; woken is also read without
  // it, to save a wake-up that is on its way already.
  private final ArrayDeque<Runnable> jobs = new ArrayDeque<>();
  private volatile boolean woken;
  private boolean closed;
  private final Runnable whenRoom = this::wake;
  // Touched by the thread only.
  private final List<CacheTask> wanting = new ArrayList<>();

  Dispatcher(CacheRuntime cache, ThreadFactory threads) {
    this.cache = cache;
    this.thread = threads.newThread(this::work);
  }

  void start() {
    thread.start();
  }

  /**
   * Ends the thread, when it has done what it does at the moment.
   *
   * @return whether it ended in time
   */
  boolean close(Duration timeout) {
    synchronized (this) {
      closed = true;
      notifyAll();
    }
    return ThreadEnd.await(thread, timeout);
  }

  synchronized void submit(Runnable job) {
    jobs.add(job);
    notifyAll();
  }

  /** Tries again for a task whenever slots come free, until it has all it needs or has expired. */
  void retry(CacheTask task) {
    submit(() -> want(task));
  }

  /** Has a shard of a load planned again: the store that was to bring it has not. */
  void retry(LoadTask load, int shard) {
    submit(
        () -> {
          load.again(shard);
          want(load);
        });
  }

  /** Has the thread look again at what it could not do before. */
  void wake() {
    if (woken) {
      return;
    }
    synchronized (this) {
      woken = true;
      notifyAll();
    }
  }

  private void work() {
    long waitNanos = WriteBehind.FOREVER;
    while (await(waitNanos)) {
      try {
        for (Runnable job = poll(); job != null; job = poll()) {
          job.run();
        }
        retryAll();
        waitNanos = cache.writes.send();
      } catch (RuntimeException e) {
        // A next stage that breaks its contract; the thread must live on for the others, who may
        // have called it before this.
        LOG.error("Cache: a background job failed", e);
        waitNanos = AGAIN_NANOS;
      }
    }
  }

  private void want(CacheTask task) {
    if (!wanting.contains(task)) {
      wanting.add(task);
    }
  }

  private void retryAll() {
    if (wanting.isEmpty()) {
      return;
    }
    // First said, then tried: a slot that comes free in between wakes this thread again.
    cache.pool.setWanting(whenRoom, true);
    boolean room = true;
    for (CacheTask task : wanting) {
      room = task.plan(room);
    }
    wanting.removeIf(task -> !task.wantsRoom());
    cache.pool.setWanting(whenRoom, !wanting.isEmpty());
  }

  /** Sleeps until there is something to do; false when the thread should end. */
  private synchronized boolean await(long nanos) {
    long end = System.nanoTime() + nanos;
    long left = nanos;
    try {
      while (jobs.isEmpty() && !woken && !closed && left > 0) {
        if (nanos == WriteBehind.FOREVER) {
          wait();
        } else {
          TimeUnit.NANOSECONDS.timedWait(this, left);
          left = end - System.nanoTime();
        }
      }
    } catch (InterruptedException e) {
      // Only the store ends this thread, and it does so with close.
      LOG.debug("interrupted while waiting; going on");
    }
    woken = false;
    return !closed || !jobs.isEmpty();
  }

  private synchronized @Nullable Runnable poll() {
    return jobs.poll();
  }
}
