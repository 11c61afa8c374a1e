package ucm.platform.thread;

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
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
