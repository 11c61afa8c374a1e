package ucm.platform.thread;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that sleep until they are called, the one that came last first, as its caches are the warmest.
 * All methods but {@link #called} are for whoever holds the owner's lock.
 *
 * <p>In place of a condition of that lock, because of several threads called there each one is woken only
 * when the one before it has let the lock go: one wake-up after the other.
 */
final class ParkedThreads {

  private static final class Place {

    final Thread thread = Thread.currentThread();
    final boolean upper;
    volatile boolean isCalled;

    Place(boolean upper) {
      this.upper = upper;
    }
  }

  private final ReentrantLock lock;
  private final ArrayDeque<Place> places = new ArrayDeque<>();
  private final AtomicInteger called = new AtomicInteger();

  ParkedThreads(ReentrantLock lock) {
    this.lock = lock;
  }

  /** Threads that were called and are not up yet; a hint for who does not hold the lock. */
  int called() {
    return called.get();
  }

  /** Calls one; false when none sleeps. */
  boolean callOne() {
    Place place = places.poll();
    if (place == null) {
      return false;
    }
    called.incrementAndGet();
    place.isCalled = true;
    LockSupport.unpark(place.thread);
    return true;
  }

  /** Calls all. */
  void callAll() {
    boolean more = true;
    while (more) {
      more = callOne();
    }
  }

  /**
   * Sleeps until called; the lock is given up meanwhile.
   *
   * @param where of the calling thread; it sleeps on another half of the processors than who is called before it
   */
  void sleep(SleepPlace where) {
    Place last = places.peek();
    Place place = new Place(last != null && !last.upper);
    places.push(place);
    lock.unlock();
    where.enter(place.upper);
    boolean interrupted = false;
    while (!place.isCalled) {
      LockSupport.park(this);
      interrupted |= Thread.interrupted();
    }
    where.leave();
    lock.lock();
    called.decrementAndGet();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
