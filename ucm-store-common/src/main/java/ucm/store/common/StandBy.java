package ucm.store.common;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The place of the one thread of {@link ShardWorkers} that stands by: it looks once in a tick whether
 * shards end, and asks {@link ThreadDemand} for one more thread when none did. Where no shard ends
 * nothing else would ask, because the demand is learned from shards that end.
 *
 * <p>All methods but {@link #isTaken} are for whoever holds the owner's lock; {@link #stand} gives it
 * up between two looks. At most one thread may stand by at a time: the owner sees to that.
 */
final class StandBy {

  // It looks less often after so many looks without work, and leaves after so many in all, some
  // seconds: to call a thread anew costs a short batch more than its looks do.
  private static final int QUICK_LOOKS = 16;
  private static final int NAP_TICKS = 16;
  private static final int QUIET_LOOKS = 80;

  private final long tickNanos;
  private final BatchQueue queue;
  private final ThreadDemand demand;
  private final AtomicInteger working;
  private final Condition tick;

  // Changed under the lock, read without it as a hint.
  private volatile boolean isTaken;

  /**
   * A free place.
   *
   * @param lock the owner's, which guards the queue and the changes of {@code working} too
   * @param tickNanos from one look to the next while there is work
   * @param working how many threads work
   */
  StandBy(
      ReentrantLock lock,
      long tickNanos,
      BatchQueue queue,
      ThreadDemand demand,
      AtomicInteger working) {
    this.tick = lock.newCondition();
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
    tick.signal();
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

  private void awaitTick(long nanos) {
    boolean interrupted = false;
    long left = nanos;
    while (left > 0) {
      try {
        // Woken early only to look at once.
        tick.awaitNanos(left);
        left = 0;
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
