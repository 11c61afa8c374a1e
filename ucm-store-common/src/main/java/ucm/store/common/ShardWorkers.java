package ucm.store.common;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.QueueFullException;
import ucm.api.StoreClosedException;

/**
 * Named threads that work through the shards of tasks.
 *
 * <p>A task hands in one {@link Batch}; the threads claim its shards one by one from a counter, so
 * that nothing is queued or allocated per shard. The batch at the head is worked on by all threads
 * until its last shard is claimed, then the next one. A thread that claims a shard while more are left
 * wakes one more thread: a short batch wakes few, and a submitter never pays for more than one.
 *
 * <p>At most {@code maxThreads} threads exist, and at most four per processor are started: shards are
 * bound by memory bandwidth or by a device that is kept busy by few requests, and more threads than
 * that only push each other out of the caches.
 */
public final class ShardWorkers implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(ShardWorkers.class);
  private static final int THREADS_PER_PROCESSOR = 4;

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

  private static final class Claim {

    final Batch batch;
    final int size;
    final AtomicInteger next = new AtomicInteger();

    Claim(Batch batch, int size) {
      this.batch = batch;
      this.size = size;
    }

    boolean hasMore() {
      return next.get() < size;
    }
  }

  private final String role;
  private final int maxThreads;
  private final Limits limits;
  private final CpuAffinity affinity;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition work = lock.newCondition();
  private final AtomicInteger openShards = new AtomicInteger();

  // Guarded by lock; head is written under it and read without it on the hot path.
  private final ArrayDeque<Claim> waiting = new ArrayDeque<>();
  private final List<Thread> threads = new ArrayList<>();
  private boolean closed;
  private volatile @Nullable Claim head;
  private int wakeUps;
  // Threads that sleep and are not called yet, and threads there are; written under lock, read
  // without it as a hint.
  private final AtomicInteger idle = new AtomicInteger();
  private volatile int threadCount;
  private volatile int standIns;

  /**
   * Starts no thread yet.
   *
   * @param role names the threads: {@code ucm-<role>-<n>}
   * @param maxThreads how many threads at the most
   * @param affinity where they run
   */
  public ShardWorkers(String role, int maxThreads, Limits limits, CpuAffinity affinity) {
    this.role = role;
    this.maxThreads =
        Math.min(maxThreads, THREADS_PER_PROCESSOR * Runtime.getRuntime().availableProcessors());
    this.limits = limits;
    this.affinity = affinity;
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
      if (closed) {
        throw new StoreClosedException(role);
      }
      if (waiting.size() >= limits.waitingBatches) {
        throw new QueueFullException(role + " tasks", waiting.size(), limits.waitingKey);
      }
      // A batch larger than the bound may run alone, or it could never run at all.
      int open = openShards.get();
      if (open > 0 && (long) open + size > limits.runningShards) {
        throw new QueueFullException(role + " shards", open, limits.runningKey);
      }
      openShards.addAndGet(size);
      waiting.add(new Claim(batch, size));
      if (head == null) {
        head = waiting.peek();
      }
      wakeOne();
    } finally {
      lock.unlock();
    }
  }

  /** How many threads may exist, stand-ins aside. */
  public int maxThreads() {
    return maxThreads;
  }

  /**
   * Lets more threads exist for as long as some are held by a medium that hangs, so that shards of
   * others are not held up with them. Threads that were started stay when fewer are asked for.
   *
   * @param count how many more than the usual number
   */
  public void standIn(int count) {
    lock.lock();
    try {
      standIns = count;
      if (head != null) {
        wakeOne();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Shards accepted and not done. */
  public int openShards() {
    return openShards.get();
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
      closed = true;
      wakeUps += idle.getAndSet(0);
      work.signalAll();
    } finally {
      lock.unlock();
    }
    long deadline = System.nanoTime() + timeout.toNanos();
    try {
      // What was accepted may still start threads, while others end.
      for (int i = 0; i < threadCount; i++) {
        if (!thread(i).join(Duration.ofNanos(Math.max(1, deadline - System.nanoTime())))) {
          return false;
        }
      }
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private Thread thread(int i) {
    lock.lock();
    try {
      return threads.get(i);
    } finally {
      lock.unlock();
    }
  }

  /** Closes and waits for as long as it takes. */
  @Override
  public void close() {
    close(Duration.ofDays(1));
  }

  private void work() {
    affinity.applyToThisThread();
    while (true) {
      // Hot path: one atomic increment per shard, no lock while the batch at the head lasts.
      Claim claim = head;
      if (claim == null) {
        if (!sleep()) {
          return;
        }
        continue;
      }
      int shard = claim.next.getAndIncrement();
      if (shard >= claim.size - 1) {
        advance(claim);
        if (shard >= claim.size) {
          continue;
        }
      }
      if ((claim.hasMore() || head != null)
          && (idle.get() > 0 || threadCount < maxThreads + standIns)) {
        wakeAnother();
      }
      try {
        claim.batch.run(shard);
      } catch (Throwable t) {
        // The batch broke its contract; the thread must live on for the others.
        LOG.error("{}: shard {} of a batch threw", role, shard, t);
      }
      openShards.decrementAndGet();
    }
  }

  private void advance(Claim exhausted) {
    lock.lock();
    try {
      if (waiting.peek() == exhausted) {
        waiting.poll();
        head = waiting.peek();
      }
    } finally {
      lock.unlock();
    }
  }

  private void wakeAnother() {
    lock.lock();
    try {
      wakeOne();
    } finally {
      lock.unlock();
    }
  }

  private void wakeOne() {
    if (idle.get() > 0) {
      idle.decrementAndGet();
      wakeUps++;
      work.signal();
    } else if (threadCount < maxThreads + standIns) {
      Thread thread =
          Thread.ofPlatform()
              .daemon()
              .name("ucm-" + role + "-" + threadCount)
              .unstarted(this::work);
      threads.add(thread);
      threadCount = threads.size();
      thread.start();
    }
  }

  /** Sleeps until there is work; false when the thread should end. */
  private boolean sleep() {
    lock.lock();
    try {
      while (head == null) {
        if (closed) {
          return false;
        }
        idle.incrementAndGet();
        while (wakeUps == 0) {
          work.awaitUninterruptibly();
        }
        wakeUps--;
      }
      return true;
    } finally {
      lock.unlock();
    }
  }
}
