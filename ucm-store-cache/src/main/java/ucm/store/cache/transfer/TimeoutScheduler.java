package ucm.store.cache.transfer;

import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends what is left of tasks at their deadline.
 *
 * <p>All tasks have the same time, so the order of arrival is the order of their timeouts: a set that
 * keeps that order, and one thread that sleeps until the first is due. A task that arrives
 * while it sleeps is due later and wakes no thread; so an idle store wakes at most once per timeout.
 */
final class TimeoutScheduler extends StageThread {

  private static final Logger LOG = LoggerFactory.getLogger(TimeoutScheduler.class);

  private final LongSupplier clock;
  private final long timeoutNanos;
  // Guarded by lock; in order of arrival.
  private final SequencedSet<CacheTask> tasks = new LinkedHashSet<>();
  private boolean asleep;

  /** Starts without tasks. */
  TimeoutScheduler(LongSupplier clock, long timeoutNanos, Thread.UncaughtExceptionHandler faults) {
    super("ucm-cache-deadline-0", faults);
    this.clock = clock;
    this.timeoutNanos = timeoutNanos;
  }

  /** Adds a task. */
  void add(CacheTask task) {
    lock.lock();
    try {
      task.deadlineNanos = clock.getAsLong() + timeoutNanos;
      tasks.add(task);
      if (asleep) {
        changed.signal();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Forgets a task, which has completed. */
  void remove(CacheTask task) {
    lock.lock();
    try {
      tasks.remove(task);
    } finally {
      lock.unlock();
    }
  }

  /** Ends all tasks now, as if their time had passed. */
  void expireAll() {
    while (true) {
      CacheTask task;
      lock.lock();
      try {
        if (tasks.isEmpty()) {
          return;
        }
        task = tasks.removeFirst();
      } finally {
        lock.unlock();
      }
      task.expire();
    }
  }

  @Override
  void work() {
    for (CacheTask due = awaitDue(); due != null; due = awaitDue()) {
      due.expire();
    }
  }

  /** The first task whose time has passed; null when the thread should end. */
  private @Nullable CacheTask awaitDue() {
    lock.lock();
    try {
      while (true) {
        try {
          return awaitDueOrClose();
        } catch (InterruptedException e) {
          LOG.debug("interrupted; only close ends this thread");
        }
      }
    } finally {
      lock.unlock();
    }
  }

  private @Nullable CacheTask awaitDueOrClose() throws InterruptedException {
    while (!closed) {
      if (tasks.isEmpty()) {
        asleep = true;
        try {
          changed.await();
        } finally {
          asleep = false;
        }
        continue;
      }
      long remaining = tasks.getFirst().deadlineNanos - clock.getAsLong();
      if (remaining <= 0) {
        return tasks.removeFirst();
      }
      long _ = changed.awaitNanos(remaining);
    }
    return null;
  }
}
