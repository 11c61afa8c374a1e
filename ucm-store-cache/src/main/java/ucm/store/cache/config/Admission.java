package ucm.store.cache.config;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import ucm.api.QueueFullException;
import ucm.api.StoreClosedException;

/** Counts the tasks that have not completed, keeps them within the bounds, and admits none after close. */
public final class Admission {

  private final int maxTasks;
  private final int maxShards;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition left = lock.newCondition();
  // Guarded by lock.
  private int tasks;
  private int shards;
  private boolean closed;

  public Admission(int maxTasks, int maxShards) {
    this.maxTasks = maxTasks;
    this.maxShards = maxShards;
  }

  /**
   * Lets a task in. One larger than the bound of shards may run alone, or it could never run.
   *
   * @throws QueueFullException when a bound is reached
   * @throws StoreClosedException after {@link #close}
   */
  public void enter(int shardCount) {
    lock.lock();
    try {
      if (closed) {
        throw new StoreClosedException("Cache");
      }
      if (tasks >= maxTasks) {
        throw new QueueFullException("Cache tasks", tasks, CacheConfig.WAITING_QUEUE_DEPTH.name());
      }
      if (shards > 0 && (long) shards + shardCount > maxShards) {
        throw new QueueFullException(
            "Cache shards", shards, CacheConfig.RUNNING_QUEUE_DEPTH.name());
      }
      tasks++;
      shards += shardCount;
    } finally {
      lock.unlock();
    }
  }

  /** Says that a task has completed. */
  public void leave(int shardCount) {
    lock.lock();
    try {
      tasks--;
      shards -= shardCount;
      if (tasks == 0) {
        left.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Admits no more tasks. */
  public void close() {
    lock.lock();
    try {
      closed = true;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until all tasks have left.
   *
   * @return how many have not, after so many nanoseconds
   */
  public int awaitNone(long nanos) throws InterruptedException {
    long remaining = nanos;
    lock.lock();
    try {
      while (tasks > 0 && remaining > 0) {
        remaining = left.awaitNanos(remaining);
      }
      return tasks;
    } finally {
      lock.unlock();
    }
  }

  /** Tasks that have not completed. */
  public int tasks() {
    lock.lock();
    try {
      return tasks;
    } finally {
      lock.unlock();
    }
  }
}
