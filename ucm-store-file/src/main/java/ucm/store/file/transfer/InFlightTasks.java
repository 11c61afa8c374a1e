package ucm.store.file.transfer;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import ucm.api.BlockIds;
import ucm.store.file.health.DirectoryHealth;

/**
 * The jobs under way, oldest first. As all have the same time, that is also the order of their
 * deadlines. Thread-safe; its lock is held for a few instructions per job.
 */
public final class InFlightTasks {

  // Guarded by this; in order of arrival.
  private final Set<TransferJob> jobs = new LinkedHashSet<>();

  /** Takes a job up, unless it was dropped already. */
  public synchronized void add(TransferJob job) {
    if (!job.isDropped) {
      jobs.add(job);
    }
  }

  /** Drops a job that has completed; it may not be here yet. */
  public synchronized void remove(TransferJob job) {
    job.isDropped = true;
    jobs.remove(job);
  }

  /** Whether there are none. */
  public synchronized boolean isEmpty() {
    return jobs.isEmpty();
  }

  /** The blocks that are being loaded. */
  public Set<BlockIds> loading() {
    Set<BlockIds> ids = new HashSet<>();
    for (TransferJob job : jobs(false)) {
      BlockIds of = job.transfer.ids();
      for (int i = 0; i < of.size(); i++) {
        ids.add(BlockIds.of(of.high(i), of.low(i)));
      }
    }
    return ids;
  }

  /** The jobs that write. */
  public List<TransferJob> dumps() {
    return jobs(true);
  }

  private List<TransferJob> jobs(boolean dumps) {
    return all().stream().filter(job -> job.isDump == dumps).toList();
  }

  /**
   * Ends what was not begun of the jobs whose deadline has passed.
   *
   * @return nanoseconds to the next deadline, {@link Long#MAX_VALUE} when there is none
   */
  public long expireDue(long now) {
    List<TransferJob> due = new ArrayList<>();
    long left = Long.MAX_VALUE;
    synchronized (this) {
      for (TransferJob job : jobs) {
        left = job.deadlineNanos - now;
        if (left > 0) {
          break;
        }
        left = Long.MAX_VALUE;
        due.add(job);
      }
    }
    due.forEach(TransferJob::timeOut);
    return left;
  }

  /** Ends what was not begun of all jobs. */
  public void expireAll() {
    all().forEach(TransferJob::timeOut);
  }

  /** Ends what was not begun of blocks whose directory is down. */
  public void refuse(DirectoryHealth health) {
    all().forEach(job -> job.refuse(health));
  }

  private synchronized List<TransferJob> all() {
    return new ArrayList<>(jobs);
  }
}
