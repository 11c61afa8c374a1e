package ucm.store.posix;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The jobs under way, oldest first. As all have the same time, that is also the order of their
 * deadlines. Thread-safe; its lock is held for a few instructions per job.
 */
final class JobBoard {

  // Guarded by this.
  private @Nullable TransferJob oldest;
  private @Nullable TransferJob newest;

  /** Takes a job up. */
  synchronized void add(TransferJob job) {
    job.previous = newest;
    if (newest == null) {
      oldest = job;
    } else {
      newest.next = job;
    }
    newest = job;
  }

  /** Drops a job that is terminal, or was never begun. */
  synchronized void remove(TransferJob job) {
    TransferJob before = job.previous;
    TransferJob after = job.next;
    if (before != null) {
      before.next = after;
    } else if (oldest == job) {
      oldest = after;
    }
    if (after != null) {
      after.previous = before;
    } else if (newest == job) {
      newest = before;
    }
    job.previous = null;
    job.next = null;
  }

  /** The jobs that write. */
  synchronized List<TransferJob> dumps() {
    List<TransferJob> dumps = new ArrayList<>();
    for (TransferJob job = oldest; job != null; job = job.next) {
      if (job.isDump) {
        dumps.add(job);
      }
    }
    return dumps;
  }

  /**
   * Ends what was not begun of the jobs whose deadline has passed.
   *
   * @return nanoseconds to the next deadline, {@link Long#MAX_VALUE} when there is none
   */
  long expireDue(long now) {
    List<TransferJob> due = new ArrayList<>();
    long left = Long.MAX_VALUE;
    synchronized (this) {
      for (TransferJob job = oldest; job != null; job = job.next) {
        left = job.deadlineNanos - now;
        if (left > 0) {
          break;
        }
        left = Long.MAX_VALUE;
        due.add(job);
      }
    }
    due.forEach(TransferJob::expire);
    return left;
  }

  /** Ends what was not begun of all jobs. */
  void expireAll() {
    all().forEach(TransferJob::expire);
  }

  /** Ends what was not begun of blocks whose backend is down. */
  void refuse(BackendHealth health) {
    all().forEach(job -> job.refuse(health));
  }

  private synchronized List<TransferJob> all() {
    List<TransferJob> all = new ArrayList<>();
    for (TransferJob job = oldest; job != null; job = job.next) {
      all.add(job);
    }
    return all;
  }
}
