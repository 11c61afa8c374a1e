package ucm.platform.thread;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that sleep until they are called, the one that came last first, as its caches are the warmest.
 * All methods but {@link #called} are called under the owner's lock.
 *
 * <p>In place of a condition of that lock, because of several threads called there each one is woken only
 * when the one before it has let the lock go: one wake-up after the other.
 */
final class ParkedThreads {

  private static final class Parked {

    final Thread thread = Thread.currentThread();
    final boolean upper;
    volatile boolean isCalled;

    Parked(boolean upper) {
      this.upper = upper;
    }
  }

  private final ReentrantLock lock;
  private final ArrayDeque<Parked> parked = new ArrayDeque<>();
  private final AtomicInteger called = new AtomicInteger();

  ParkedThreads(ReentrantLock lock) {
    this.lock = lock;
  }

  /** Threads that were called and are not up yet; without the lock, a hint. */
  int called() {
    return called.get();
  }

  /** Calls one; false when none sleeps. */
  boolean callOne() {
    Parked own = parked.poll();
    if (own == null) {
      return false;
    }
    called.incrementAndGet();
    own.isCalled = true;
    LockSupport.unpark(own.thread);
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
   * @param where of the calling thread; it sleeps on another half of the processors than the one woken
   * before it
   */
  void sleep(SleepAffinity where) {
    Parked last = parked.peek();
    Parked own = new Parked(last != null && !last.upper);
    parked.push(own);
    lock.unlock();
    where.enter(own.upper);
    boolean interrupted = false;
    while (!own.isCalled) {
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
