package ucm.platform.thread;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The one thread of {@link ShardWorkers} that compensates for held ones: it checks once in a tick whether
 * shards end, and asks {@link ThreadDemand} for one more thread when none did. Where no shard ends
 * nothing else would ask, because the demand is learned from shards that end.
 *
 * <p>All methods but {@link #isTaken} are called under the owner's lock; {@link #stand} gives it
 * up between two checks. The owner sees to it that at most one thread waits here.
 */
final class CompensatingThreads {

  // It checks less often after so many runs without work, and leaves after so many in all, some
  // seconds: waking a thread costs a short batch more than these checks do.
  private static final int QUICK_RUNS = 16;
  private static final int NAP_TICKS = 16;
  private static final int QUIET_RUNS = 80;

  private final ReentrantLock lock;
  private final long tickNanos;
  private final BatchQueue queue;
  private final ThreadDemand demand;
  private final AtomicInteger working;

  // Changed under the lock, read without it as a hint.
  private volatile boolean isTaken;
  // The thread that waits for the next tick; guarded by the lock.
  private @Nullable Thread sleeper;
  private volatile boolean isWoken;

  /**
   * With no thread in it.
   *
   * @param lock the owner's, which guards the queue and the changes of {@code working} too
   * @param tickNanos from one check to the next while there is work
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

  /** Whether a thread waits here; without the lock, a hint. */
  boolean isTaken() {
    return isTaken;
  }

  /** Lets the waiting thread check at once. Does nothing when there is none. */
  void wake() {
    if (sleeper != null) {
      isWoken = true;
      LockSupport.unpark(sleeper);
    }
  }

  /**
   * Waits until this thread should work, or the queue is over, or there was no work for long.
   *
   * @return whether this thread should work
   */
  boolean stand() {
    isTaken = true;
    boolean hadWork = false;
    int quietRuns = 0;
    while (quietRuns < QUIET_RUNS && !queue.isOver()) {
      long ended = queue.done();
      awaitTick(quietRuns < QUICK_RUNS ? tickNanos : NAP_TICKS * tickNanos);
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
      quietRuns = hasWork ? 0 : quietRuns + 1;
    }
    isTaken = false;
    return false;
  }

  /** Waits for the next tick, or for {@link #wake}; a condition would allocate for each wait. */
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
