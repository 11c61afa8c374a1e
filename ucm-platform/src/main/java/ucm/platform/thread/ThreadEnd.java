package ucm.platform.thread;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

/** Waits for threads that nothing may outlive; an interrupt of the calling thread meanwhile is kept for later. */
public final class ThreadEnd {

  /** However long it takes. */
  public static final Duration FOREVER = Duration.ofDays(365);

  private ThreadEnd() {}

  /** Something that is waited for. */
  public interface Wait {
    /** Waits for some time; false when it has not come. */
    boolean join(Duration left) throws InterruptedException;
  }

  /**
   * Waits until all of them have ended, however long that takes.
   *
   * @param threads started ones
   */
  public static void await(List<Thread> threads) {
    threads.forEach(thread -> await(thread, FOREVER));
  }

  /** The same for one thread and some time; false when it still runs. */
  public static boolean await(Thread thread, Duration patience) {
    return await(patience, thread::join);
  }

  /** The same for the threads of an executor that was shut down. */
  public static boolean await(Duration patience, ExecutorService threads) {
    return await(patience, left -> threads.awaitTermination(left.toNanos(), TimeUnit.NANOSECONDS));
  }

  /** The same for anything. */
  public static boolean await(Duration patience, Wait wait) {
    long end = System.nanoTime() + patience.toNanos();
    boolean interrupted = false;
    boolean hasEnded = false;
    for (long left = 1; left > 0 && !hasEnded; left = end - System.nanoTime()) {
      try {
        hasEnded = wait.join(Duration.ofNanos(Math.max(1, end - System.nanoTime())));
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
