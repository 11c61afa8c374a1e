package ucm.store.cache.shared;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that learns what other processes do to a shared pool: it sleeps on a word that they change
 * when a slot it waits for is filled, or room comes free, and looks several times a second whether one
 * of them has died.
 */
final class OwnerMonitor {

  private static final Logger LOG = LoggerFactory.getLogger(OwnerMonitor.class);
  // Bounds the time for which others wait for a process that died.
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  private final SharedPool pool;
  private final SegmentOwners owners;
  private final Thread thread;
  private volatile boolean closed;

  OwnerMonitor(SharedPool pool, SegmentOwners owners, Thread.UncaughtExceptionHandler faults) {
    this.pool = pool;
    this.owners = owners;
    this.thread =
        Thread.ofPlatform()
            .daemon()
            .name("ucm-cache-shared-0")
            .uncaughtExceptionHandler(faults)
            .unstarted(this::work);
  }

  void start() {
    thread.start();
  }

  /**
   * Ends the thread, and waits for it also when interrupted, which is put off: it works on memory that
   * is about to go.
   *
   * @return whether it ended in time
   */
  boolean close(Duration timeout) {
    closed = true;
    owners.wake(1 << owners.own());
    long deadline = System.nanoTime() + timeout.toNanos();
    boolean interrupted = false;
    while (thread.isAlive() && System.nanoTime() < deadline) {
      try {
        boolean _ = thread.join(Duration.ofNanos(deadline - System.nanoTime()));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return !thread.isAlive();
  }

  private void work() {
    long looked = System.nanoTime();
    while (true) {
      int event = owners.event();
      if (closed) {
        return;
      }
      try {
        pool.checkOwners();
        if (System.nanoTime() - looked >= POLL_NANOS) {
          looked = System.nanoTime();
          pool.clear();
        }
      } catch (RuntimeException e) {
        // A listener of the engine that breaks its contract; the thread must live on for the
        // others.
        LOG.error("Cache: what another process did could not be told", e);
      }
      owners.awaitEvent(event, POLL_NANOS);
    }
  }
}
