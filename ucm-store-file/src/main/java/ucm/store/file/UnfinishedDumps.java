package ucm.store.file;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.StoreTimeoutException;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.block.PartialBlock;
import ucm.store.file.block.PartialBlocks;
import ucm.store.file.block.PartialWriter;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.transfer.DumpFailures;
import ucm.store.file.transfer.InFlightTasks;
import ucm.store.file.transfer.TransferJob;

/**
 * What was accepted and has not ended: tasks, and blocks of which shards are still to come. Ends what
 * is due, and waits for it. Thread-safe.
 */
final class UnfinishedDumps {

  private static final long RECHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private final InFlightTasks inFlight;
  private final PartialBlocks partials;
  private final PartialWriter partialWriter;
  private final OpenBlocks opened;
  private final DirectoryHealth health;
  private final DumpFailures failures;
  private final LongSupplier clock;
  private final long timeoutNanos;

  UnfinishedDumps(
      InFlightTasks inFlight,
      PartialBlocks partials,
      PartialWriter partialWriter,
      OpenBlocks opened,
      DirectoryHealth health,
      DumpFailures failures,
      LongSupplier clock,
      int timeoutMs) {
    this.inFlight = inFlight;
    this.partials = partials;
    this.partialWriter = partialWriter;
    this.opened = opened;
    this.health = health;
    this.failures = failures;
    this.clock = clock;
    this.timeoutNanos = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
  }

  /**
   * Ends what is due.
   *
   * @return nanoseconds until something may be due again, {@link Long#MAX_VALUE} when nothing is open
   */
  long endDue() {
    long now = clock.getAsLong();
    long next = Math.min(inFlight.expireDue(now), opened.closeIdle(health, now));
    // Asked first: a late dump may still begin a block, and no other call would come back to
    // that.
    boolean isIdle = inFlight.isEmpty();
    if (partials.size() == 0) {
      return isIdle ? next : Math.min(next, timeoutNanos);
    }
    return Math.min(next, partialWriter.giveUpDue(now, timeoutNanos));
  }

  /**
   * Waits for the dumps up to a task; see {@link ucm.api.Store#flush}.
   *
   * @param last the number of that task
   */
  FlushResult flush(Duration timeout, long last) throws InterruptedException {
    long deadline = System.nanoTime() + timeout.toNanos();
    endDue();
    // A block may be open in several tasks, and as a file that lacks shards.
    Set<BlockIds> pending = new HashSet<>();
    for (TransferJob job : inFlight.dumps()) {
      if (job.task.id() <= last && !isCompletedBy(job, deadline)) {
        job.collectOpenBlocks(pending);
      }
    }
    for (PartialBlock partial : partials.all()) {
      if (partial.firstTask() <= last && !isEndedBy(partial, deadline)) {
        pending.add(BlockIds.of(partial.idHigh, partial.idLow));
      }
    }
    return failures.take(pending.size());
  }

  /** Another writer may store the block at any time, unnoticed. */
  private boolean isEndedBy(PartialBlock partial, long deadline) throws InterruptedException {
    while (!partialWriter.endIfStored(partial)) {
      long next = Math.min(deadline, System.nanoTime() + RECHECK_NANOS);
      if (partial.awaitEnd(next)) {
        return true;
      }
      if (next == deadline) {
        return false;
      }
    }
    return true;
  }

  private static boolean isCompletedBy(TransferJob job, long deadline) throws InterruptedException {
    try {
      long left = Math.max(0, deadline - System.nanoTime());
      job.task.await(Duration.ofNanos(left));
      return true;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }

  /** Ends what no worker has begun with. */
  void endWaiting() {
    inFlight.expireAll();
  }

  /**
   * Ends everything at close, after the workers have ended.
   *
   * @return how many blocks lacked shards
   */
  int endAll() {
    endWaiting();
    int unfinished = partials.size();
    partialWriter.giveUpAll();
    opened.closeAll(health);
    return unfinished;
  }
}
