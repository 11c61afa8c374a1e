package ucm.platform.thread;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Does something at intervals, on a thread of its own, so that a hang holds up nothing else. */
public final class PeriodicThread {

  private final CountDownLatch stopped = new CountDownLatch(1);
  private final Thread thread;

  /**
   * Starts no thread yet.
   *
   * @param newThread makes the thread
   * @param action must not throw
   */
  public PeriodicThread(Thread.Builder newThread, long intervalNanos, Runnable action) {
    thread =
        newThread.unstarted(
            () -> {
              try {
                while (!stopped.await(intervalNanos, TimeUnit.NANOSECONDS)) {
                  action.run();
                }
              } catch (InterruptedException e) {
                // It ends as when it is stopped.
                Thread.currentThread().interrupt();
              }
            });
  }

  /** Starts; it is done for the first time after one interval. */
  public void start() {
    thread.start();
  }

  /** Does it no more; what is under way goes on. */
  public void stop() {
    stopped.countDown();
  }

  /** Waits for the thread; false when it still runs. */
  public boolean join(Duration timeout) throws InterruptedException {
    return thread.getState() == Thread.State.NEW || thread.join(timeout);
  }
}
