package ucm.platform.thread;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.QueueFullException;
import ucm.api.StoreClosedException;
import ucm.platform.thread.BatchQueue.Cursor;

/**
 * Named threads that work through the shards of tasks.
 *
 * <p>A task hands in one {@link Batch}; the threads take its shards one by one from a counter, so
 * that nothing is queued or allocated per shard. The batch at the head is worked on by all threads
 * until its last shard is taken, then the next one. A submitter wakes two threads at the most, and a
 * thread that takes a shard while more are left wakes one more: a short batch wakes few. A thread that
 * runs out of work looks for more for a moment, and yields its processor meanwhile:
 * the next task often comes before a sleeping thread could be up.
 *
 * <p>How many threads work follows from what they do, see {@link ThreadDemand}; one too many sleeps
 * when it is done with a shard. Where no shard ends nothing can be learned from how they end: so one of
 * the sleeping threads compensates while there is work, see {@link CompensatingThreads}, and takes part
 * for each tick in which none ended. A thread that was held for so long gives the turn back that
 * another took in its stead.
 *
 * <p>One lock guards who works, sleeps and compensates, and the changes of the queue. Shards are taken
 * without it, and run without it.
 */
public final class ShardWorkers implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(ShardWorkers.class);
  // As long as moving a few MiB from the page cache takes on a busy machine.
  private static final long TICK_NANOS = 2_000_000;
  // Two threads spin for as long as the last shards of a task and an engine's way to the next one
  // take, others for as long as waking a thread takes.
  private static final int LONG_SPINS = 2;
  private static final long LONG_SPIN_NANOS = 400_000;
  private static final long SPIN_NANOS = 50_000;

  /** The shards of one task, or of the part of it that goes one way. */
  public interface Batch {

    /** How many shards. */
    int size();

    /**
     * Moves one shard. Called once per index, by any worker, several at a time. Must not throw.
     *
     * @param index from 0 to {@link #size()} - 1
     */
    void run(int index);
  }

  /**
   * How much may wait, and the keys that say so.
   *
   * @param waitingBatches how many batches may wait for a worker
   * @param waitingKey the configuration key of that bound
   * @param runningShards how many shards may be accepted and not done
   * @param runningKey the configuration key of that bound
   */
  public record Limits(
      int waitingBatches, String waitingKey, int runningShards, String runningKey) {}

  private final String role;
  private final int maxThreads;
  private final CpuAffinity affinity;
  private final long tickNanos;
  private final Supplier<ThreadUsage> usages;
  private final ThreadDemand demand;
  private final ReentrantLock lock = new ReentrantLock();
  private final BatchQueue queue;

  // Guarded by lock.
  private final Thread.Builder newThreads;
  private final List<Thread> threads = new ArrayList<>();
  private final ParkedThreads sleepers = new ParkedThreads(lock);

  // Changed under lock, read without it as hints: threads that work; new ones that are not up yet;
  // and threads that look for work.
  private final AtomicInteger working = new AtomicInteger();
  private final AtomicInteger starting = new AtomicInteger();
  private final AtomicInteger spinning = new AtomicInteger();
  private final CompensatingThreads compensating;

  /**
   * Starts no thread yet.
   *
   * @param role names the threads: {@code ucm-<role>-<n>}
   * @param maxThreads how many threads at the most
   * @param affinity where they run
   */
  public ShardWorkers(String role, int maxThreads, Limits limits, CpuAffinity affinity) {
    this(role, maxThreads, limits, affinity, TICK_NANOS, ThreadUsage::new);
  }

  /** Threads whose time and use of processors tests decide. */
  ShardWorkers(
      String role,
      int maxThreads,
      Limits limits,
      CpuAffinity affinity,
      long tickNanos,
      Supplier<ThreadUsage> usages) {
    this.role = role;
    this.maxThreads = maxThreads;
    this.newThreads = Thread.ofPlatform().daemon().name("ucm-" + role + "-", 0);
    this.queue = new BatchQueue(role, limits);
    this.affinity = affinity;
    this.tickNanos = tickNanos;
    this.usages = usages;
    this.demand = new ThreadDemand(affinity.processors(), maxThreads);
    this.compensating = new CompensatingThreads(lock, tickNanos, queue, demand, working);
  }

  /** Sets the handler of threads that end by an error. To be called before anything is submitted. */
  public void whenThreadEnds(Thread.UncaughtExceptionHandler faults) {
    lock.lock();
    try {
      newThreads.uncaughtExceptionHandler(faults);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes the shards of a task. Never blocks.
   *
   * @throws QueueFullException when a bound is reached; nothing of the batch will run
   * @throws StoreClosedException after {@link #close}
   */
  public void submit(Batch batch) {
    int size = batch.size();
    if (size == 0) {
      return;
    }
    lock.lock();
    try {
      queue.add(batch, size);
      callOne();
      if (size > 1) {
        callOne();
      }
    } finally {
      lock.unlock();
    }
  }

  /** How many threads may exist, compensating ones aside. */
  public int maxThreads() {
    return maxThreads;
  }

  /**
   * Lets more threads exist for as long as some are held by a device that hangs, so that shards of
   * others are not held up with them. Threads that were started stay when fewer are asked for.
   *
   * @param count how many more than the usual number
   */
  public void compensate(int count) {
    lock.lock();
    try {
      demand.compensate(count);
      if (queue.hasWork()) {
        callOne();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Shards accepted and not done. */
  public int openShards() {
    return queue.open();
  }

  /**
   * Stops taking batches, lets the threads run what was accepted, and joins them. Must not be called
   * by one of the threads.
   *
   * @param timeout how long to wait at the most
   * @return false when some thread still runs after the timeout, or the caller was interrupted (its
   *     interrupt flag is set again)
   */
  public boolean close(Duration timeout) {
    lock.lock();
    try {
      queue.close();
      wakeAll();
    } finally {
      lock.unlock();
    }
    long deadline = System.nanoTime() + timeout.toNanos();
    try {
      // What was accepted may still start threads, while others end.
      int i = 0;
      for (Thread thread = thread(i); thread != null; thread = thread(++i)) {
        if (!thread.join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())))) {
          return false;
        }
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private @Nullable Thread thread(int i) {
    lock.lock();
    try {
      return i < threads.size() ? threads.get(i) : null;
    } finally {
      lock.unlock();
    }
  }

  /** Closes and waits for as long as it takes. */
  @Override
  public void close() {
    close(Duration.ofDays(1));
  }

  private void live() {
    affinity.applyToThisThread();
    WorkTime time = new WorkTime(usages.get(), demand);
    SleepAffinity affinity = new SleepAffinity();
    boolean isNew = true;
    while (rest(isNew, affinity)) {
      isNew = false;
      work(time);
    }
  }

  private void work(WorkTime time) {
    long last = System.nanoTime();
    time.begin(last);
    // Hot path: one atomic increment per shard, no lock while the batch at the head lasts.
    Cursor cursor = queue.head();
    while (cursor != null && working.get() <= demand.threads()) {
      if (runNext(cursor)) {
        long now = System.nanoTime();
        if (now - last >= tickNanos) {
          demand.giveBack();
        }
        last = now;
        time.passed(now);
      }
      cursor = queue.head();
    }
  }

  /** Takes a shard and runs it; false when there was none left. */
  private boolean runNext(Cursor cursor) {
    int shard = cursor.take();
    if (cursor.isLast(shard)) {
      advance(cursor);
    }
    if (cursor.isTaken(shard)) {
      return false;
    }
    if ((cursor.hasMore() || queue.hasWork()) && isOneWanted()) {
      lock.lock();
      try {
        callOne();
      } finally {
        lock.unlock();
      }
    }
    try {
      cursor.batch.run(shard);
    } catch (Throwable t) {
      // The batch broke its contract; the thread must live on for the others.
      LOG.error("{}: shard {} of a batch threw", role, shard, t);
    }
    queue.ended();
    return true;
  }

  private void advance(Cursor exhausted) {
    lock.lock();
    try {
      queue.advance(exhausted);
      if (queue.isOver()) {
        wakeAll();
      }
    } finally {
      lock.unlock();
    }
  }

  private boolean isOneWanted() {
    int coming = sleepers.called() + starting.get() + spinning.get();
    int expected = working.get() + coming;
    return expected < demand.threads()
        || (!compensating.isTaken() && coming == 0 && expected < demand.most());
  }

  /** Wakes a thread, to work or to compensate, when one is wanted. Under the lock. */
  private void callOne() {
    if (!isOneWanted()) {
      return;
    }
    if (sleepers.callOne()) {
      return;
    }
    if (threads.size() < demand.most()) {
      starting.incrementAndGet();
      threads.add(newThreads.start(this::live));
    } else {
      compensating.wake();
    }
  }

  private void wakeAll() {
    sleepers.callAll();
    compensating.wake();
  }

  /**
   * Sleeps until there is work for this thread, or waits as the compensating one.
   *
   * @param isNew whether the thread has just been started, and does not come from work
   * @param affinity of the thread
   * @return false when it should end
   */
  private boolean rest(boolean isNew, SleepAffinity affinity) {
    lock.lock();
    try {
      if (isNew) {
        starting.decrementAndGet();
      } else {
        working.decrementAndGet();
      }
      boolean maySpin = !isNew;
      while (!queue.isOver()) {
        boolean isNeeded = queue.hasWork() && working.get() < demand.threads();
        boolean mayCompensate =
            queue.hasWork() && !compensating.isTaken() && working.get() < demand.most();
        if (isNeeded || (mayCompensate && compensating.stand())) {
          working.incrementAndGet();
          return true;
        }
        if (maySpin && !queue.hasWork()) {
          spin();
        } else if (!mayCompensate) {
          sleepers.sleep(affinity);
        }
        maySpin = false;
      }
      return false;
    } finally {
      lock.unlock();
    }
  }

  /** Looks for work for a moment. Under the lock, which is given up meanwhile. */
  @SuppressWarnings("ThreadPriorityCheck") // Out of courtesy; nothing depends on who gets on.
  private void spin() {
    long nanos = spinning.incrementAndGet() <= LONG_SPINS ? LONG_SPIN_NANOS : SPIN_NANOS;
    lock.unlock();
    long start = System.nanoTime();
    while (!queue.hasWork() && System.nanoTime() - start < nanos) {
      Thread.yield();
    }
    lock.lock();
    spinning.decrementAndGet();
  }
}
