package ucm.platform.thread;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The place of the one thread of {@link ShardWorkers} that stands by: it looks once in a tick whether
 * shards end, and asks {@link ThreadDemand} for one more thread when none did. Where no shard ends
 * nothing else would ask, because the demand is learned from shards that end.
 *
 * <p>All methods but {@link #isTaken} are for whoever holds the owner's lock; {@link #stand} gives it
 * up between two looks. At most one thread may stand by at a time: the owner sees to that.
 */
final class CompensatingThreads {

  // It looks less often after so many looks without work, and leaves after so many in all, some
  // seconds: to call a thread anew costs a short batch more than its looks do.
  private static final int QUICK_LOOKS = 16;
  private static final int NAP_TICKS = 16;
  private static final int QUIET_LOOKS = 80;

  private final ReentrantLock lock;
  private final long tickNanos;
  private final BatchQueue queue;
  private final ThreadDemand demand;
  private final AtomicInteger working;

  // Changed under the lock, read without it as a hint.
  private volatile boolean isTaken;
  // Who waits for the next look; guarded by the lock.
  private @Nullable Thread sleeper;
  private volatile boolean isWoken;

  /**
   * A free place.
   *
   * @param lock the owner's, which guards the queue and the changes of {@code working} too
   * @param tickNanos from one look to the next while there is work
   * @param working how many threads work
   */
  CompensatingThreads(
      ReentrantLock lock,
      long tickNanos,
      BatchQueue queue,
      ThreadDemand demand,
      AtomicInteger working) {
    this.lock = lock;
    this.tickNanos = tickNanos;
    this.queue = queue;
    this.demand = demand;
    this.working = working;
  }

  /** Whether a thread stands by; a hint for who does not hold the lock. */
  boolean isTaken() {
    return isTaken;
  }

  /** Lets the thread that stands by look at once. Nothing when none does. */
  void wake() {
    if (sleeper != null) {
      isWoken = true;
      LockSupport.unpark(sleeper);
    }
  }

  /**
   * Stands by until this thread should work, or the queue is over, or there was no work for long.
   *
   * @return whether this thread should work
   */
  boolean stand() {
    isTaken = true;
    boolean hadWork = false;
    int quietLooks = 0;
    while (quietLooks < QUIET_LOOKS && !queue.isOver()) {
      long ended = queue.done();
      awaitTick(quietLooks < QUICK_LOOKS ? tickNanos : NAP_TICKS * tickNanos);
      boolean hasWork = queue.hasWork();
      boolean isHeld = hadWork && hasWork && ended == queue.done();
      if (isHeld) {
        demand.relieve();
      }
      if (hasWork && working.get() < demand.threads()) {
        isTaken = false;
        return true;
      }
      hadWork = hasWork;
      quietLooks = hasWork ? 0 : quietLooks + 1;
    }
    isTaken = false;
    return false;
  }

  /** Waits for the next look, or for {@link #wake}; a condition would allocate for each wait. */
  private void awaitTick(long nanos) {
    isWoken = false;
    sleeper = Thread.currentThread();
    lock.unlock();
    boolean interrupted = false;
    long end = System.nanoTime() + nanos;
    for (long left = nanos; left > 0 && !isWoken; left = end - System.nanoTime()) {
      LockSupport.parkNanos(this, left);
      interrupted |= Thread.interrupted();
    }
    lock.lock();
    sleeper = null;
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
