package ucm.store.file.block;

import java.util.Arrays;
import java.util.concurrent.Semaphore;

/**
 * Lets a bounded number of threads at a time do one kind of operation on the file system of a directory.
 * Each directory has its own permits, so that one that hangs holds up no other. Thread-safe.
 */
final class ConcurrencyLimit {

  private final Semaphore[] permits;

  /**
   * All permits are free.
   *
   * @param most threads at a time, in each directory
   */
  ConcurrencyLimit(int directories, int most) {
    permits = new Semaphore[directories];
    Arrays.setAll(permits, i -> new Semaphore(most));
  }

  /** Waits for a permit; the caller gives it back with {@link #leave}. */
  void enter(int directory) {
    permits[directory].acquireUninterruptibly();
  }

  void leave(int directory) {
    permits[directory].release();
  }
}
