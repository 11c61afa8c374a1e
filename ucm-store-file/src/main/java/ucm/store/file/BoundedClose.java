package ucm.store.file;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.store.file.config.StoreKind;

/**
 * Closes a store on a thread of its own, so that a file system that hangs holds that thread and not the
 * closing thread. What is held then is released when the file system returns, in the order in which it
 * always is: no descriptor, lock or temporary file stays for the life of the process.
 */
final class BoundedClose {

  private static final Logger LOG = LoggerFactory.getLogger(BoundedClose.class);
  // What is under way may take until its deadline; closing files and joining threads comes then.
  private static final Duration MARGIN = Duration.ofSeconds(1);

  private BoundedClose() {}

  /**
   * Closes, and waits for that as long as a task may take; an interrupt meanwhile is kept for later, as
   * the next close finds nothing to wait for.
   *
   * @param kind of the store
   * @param close may take as long as the file system wants
   * @param timeoutNanos the deadline of a task
   */
  static void run(StoreKind kind, Runnable close, long timeoutNanos) {
    Thread closer =
        Thread.ofPlatform()
            .daemon()
            .name(kind.thread("close", 0))
            .start(() -> runOrLog(kind, close));
    if (!hasEnded(closer, MARGIN.plusNanos(timeoutNanos))) {
      LOG.warn(
          "{} is closed, but the file system holds some of it: what that is ends when the file"
              + " system lets go, and temporary files are removed then or by the next start",
          kind.name());
    }
  }

  private static boolean hasEnded(Thread thread, Duration patience) {
    long deadline = System.nanoTime() + patience.toNanos();
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return thread.join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())));
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static void runOrLog(StoreKind kind, Runnable close) {
    try {
      close.run();
    } catch (RuntimeException e) {
      LOG.error("{} failed to close", kind.name(), e);
    }
  }
}
