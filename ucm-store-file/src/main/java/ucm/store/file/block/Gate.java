package ucm.store.file.block;

import java.util.Arrays;
import java.util.concurrent.Semaphore;

/**
 * Lets a bounded number of threads at a time do one kind of operation on the file system of a backend.
 * Each backend has its own places, so that one that hangs holds up no other. Thread-safe.
 */
final class Gate {

  private final Semaphore[] places;

  /**
   * All places are free.
   *
   * @param most threads at a time, in each backend
   */
  Gate(int backends, int most) {
    places = new Semaphore[backends];
    Arrays.setAll(places, i -> new Semaphore(most));
  }

  /** Waits for a place; the caller gives it back with {@link #leave}. */
  void enter(int backend) {
    places[backend].acquireUninterruptibly();
  }

  void leave(int backend) {
    places[backend].release();
  }
}
