package ucm.platform.thread;

import java.time.Duration;
import java.util.List;

/** Waits for threads that nothing may outlive. */
public final class ThreadEnd {

  private ThreadEnd() {}

  /**
   * Waits until all of them have ended, however long that takes; an interrupt of the calling thread
   * meanwhile is kept for later.
   *
   * @param threads started ones
   */
  public static void await(List<Thread> threads) {
    threads.forEach(thread -> await(thread, Duration.ofDays(365)));
  }

  /** The same for one thread and some time; false when it still runs. */
  public static boolean await(Thread thread, Duration patience) {
    long end = System.nanoTime() + patience.toNanos();
    boolean interrupted = false;
    boolean hasEnded = false;
    for (long left = 1; left > 0 && !hasEnded; left = end - System.nanoTime()) {
      try {
        hasEnded = thread.join(Duration.ofNanos(Math.max(1, end - System.nanoTime())));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    return hasEnded;
  }
}
