package ucm.store.file;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.StoreException;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.thread.ShardWorkers;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.block.PartialBlock;
import ucm.store.file.block.PartialWriter;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.StoreKind;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.health.TimeoutScheduler;
import ucm.store.file.index.BlockUses;
import ucm.store.file.transfer.DumpFailures;
import ucm.store.file.transfer.ShardMover;
import ucm.store.file.transfer.TransferJob;

/**
 * The tasks under way: takes transfers in, hands them to the workers, ends what is past its deadline, and
 * waits for dumps. Thread-safe.
 *
 * <p>A task ends with its last shard. The shards that make a block whole end after its commit, so that
 * a dump that went well and brought a block whole has made it durable, as far as configured.
 */
final class FileTransfers {

  private static final Logger LOG = LoggerFactory.getLogger(FileTransfers.class);
  private static final long RECHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private final FileStoreConfig config;
  private final StoreKind kind;
  private final LongSupplier clock;
  private final long timeoutNanos;
  private final FileStoreMetrics metrics;
  private final ShardWorkers workers;
  private final DirectoryHealth health;
  private final BlockUses uses;
  private final OpenBlocks opened;
  private final PartialWriter partials;
  private final DumpFailures failures;
  private final ShardMover writer;
  private final ShardMover reader;
  private final TimeoutScheduler timeouts;
  // The workers count groups of shards; the configured bound is one of shards.
  private final AtomicInteger openShards = new AtomicInteger();
  private final AtomicLong lastTask = new AtomicLong();

  // Guarded by itself; in order of arrival. As all have the same time, that is also the order of
  // their
  // deadlines.
  private final Set<TransferJob> jobs = new LinkedHashSet<>();

  FileTransfers(
      FileStoreConfig config,
      LongSupplier clock,
      FileStoreMetrics metrics,
      ShardWorkers workers,
      DirectoryHealth health,
      BlockUses uses,
      OpenBlocks opened,
      PartialWriter partials,
      DumpFailures failures,
      ShardMover writer,
      ShardMover reader) {
    this.config = config;
    this.kind = config.kind();
    this.clock = clock;
    this.timeoutNanos = TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    this.metrics = metrics;
    this.workers = workers;
    this.health = health;
    this.uses = uses;
    this.opened = opened;
    this.partials = partials;
    this.failures = failures;
    this.writer = writer;
    this.reader = reader;
    this.timeouts = new TimeoutScheduler(kind.newThread("timeouts", 0), this::endDue);
  }

  /** What ends tasks at their deadlines; to be closed after the workers. */
  TimeoutScheduler timeouts() {
    return timeouts;
  }

  /** Shards accepted and not ended. */
  int openShards() {
    return openShards.get();
  }

  /** Refuses a transfer that this store cannot move. */
  private void check(Transfer transfer) {
    if (config.isScheduler()) {
      throw new StoreException(
          kind.name()
              + " has the scheduler role (device_id: -1), which looks up and moves no data: set"
              + " device_id to that of the worker");
    }
    if (!transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "a transfer of "
              + transfer.layout()
              + " does not fit "
              + kind.name()
              + ", which is configured for "
              + config.layout());
    }
    if (!transfer.isHost()) {
      throw new StoreException(
          kind.name()
              + " moves host memory, and the transfer names memory of a device: put an upper"
              + " stage that copies it, as in Cache|"
              + kind.name());
    }
  }

  /** Accepts a transfer. */
  Task submit(Transfer transfer, boolean isDump) {
    check(transfer);
    TransferTask task = new TransferTask(lastTask.incrementAndGet(), transfer);
    ShardMover mover = isDump ? writer : reader;
    TransferJob job = new TransferJob(task, isDump, mover, health, clock, timeoutNanos);
    reserve(transfer.shardCount());
    // Before others can see it, and so end it.
    task.beforeTerminal(() -> finished(job));
    if (LOG.isDebugEnabled()) {
      LOG.debug("{} dispatching.", name(kind, job));
    }
    if (!health.isAnyDown() || !job.refuseWhole()) {
      try {
        workers.submit(job);
      } catch (RuntimeException e) {
        // No other thread has seen it: none of its shards has ended or was reported.
        openShards.addAndGet(-transfer.shardCount());
        throw e;
      }
    }
    synchronized (jobs) {
      if (!job.hasCompleted) {
        jobs.add(job);
      }
    }
    if (health.isAnyDown()) {
      // After the job is among the tasks in flight: a directory that goes down from now on finds it
      // there.
      job.refuse();
    }
    // While the workers are at it; they need not wait for a note.
    uses.moved(transfer, isDump);
    timeouts.checkIn(timeoutNanos);
    return task;
  }

  /** Takes room for shards; a transfer larger than the bound may be under way alone. */
  private void reserve(int shards) {
    int open = openShards.get();
    while (open == 0 || (long) open + shards <= config.runningQueueDepth()) {
      int found = openShards.compareAndExchange(open, open + shards);
      if (found == open) {
        return;
      }
      open = found;
    }
    throw new QueueFullException(
        kind.name() + " shards", open, CommonKeys.RUNNING_QUEUE_DEPTH.name());
  }

  private void finished(TransferJob job) {
    synchronized (jobs) {
      job.hasCompleted = true;
      jobs.remove(job);
    }
    openShards.addAndGet(-job.transfer.shardCount());
    if (opened.size() > 0) {
      timeouts.checkIn(OpenBlocks.IDLE_NANOS);
    }
    long end = clock.getAsLong();
    (job.isDump ? metrics.dumps : metrics.loads)
        .ended(job.transfer.byteSize(), job.waitNanos(end), end - job.startNanos);
    if (LOG.isDebugEnabled()) {
      double millis = Math.round((end - job.startNanos) / 1e3) / 1e3;
      LOG.debug("{} finished, cost {}ms.", name(kind, job), millis);
    }
  }

  /** Names a task in logs, as the original does. */
  static String name(StoreKind kind, TransferJob job) {
    return kind.name()
        + " task("
        + job.task.id()
        + ","
        + (job.isDump ? "Cache2Backend" : "Backend2Cache")
        + ","
        + job.transfer.shardCount()
        + ","
        + job.transfer.byteSize()
        + ")";
  }

  /** The jobs that have not completed, oldest first. */
  private List<TransferJob> jobs() {
    synchronized (jobs) {
      return new ArrayList<>(jobs);
    }
  }

  /** The blocks that are being loaded. */
  Set<BlockIds> loading() {
    Set<BlockIds> ids = new HashSet<>();
    for (TransferJob job : jobs()) {
      if (!job.isDump) {
        job.collectBlocks(ids);
      }
    }
    return ids;
  }

  /** Ends what was not begun of blocks whose directory is down. */
  void refuse() {
    jobs().forEach(TransferJob::refuse);
  }

  /**
   * Ends what is due.
   *
   * @return nanoseconds until something may be due again, {@link Long#MAX_VALUE} when nothing is open
   */
  private long endDue() {
    long now = clock.getAsLong();
    long next = opened.closeIdle(health, now);
    // Asked first: a late dump may still begin a block, and no other call would come back to
    // that.
    List<TransferJob> open = jobs();
    for (TransferJob job : open) {
      long left = job.deadlineNanos - now;
      if (left > 0) {
        next = Math.min(next, left);
        break;
      }
      job.timeOut();
    }
    if (partials.size() == 0) {
      return open.isEmpty() ? next : Math.min(next, timeoutNanos);
    }
    return Math.min(next, partials.giveUpDue(now, timeoutNanos));
  }

  /** See {@link ucm.api.Store#flush}. */
  FlushResult flush(Duration timeout) throws InterruptedException {
    long last = lastTask.get();
    long deadline = System.nanoTime() + timeout.toNanos();
    endDue();
    // A block may be open in several tasks, and as a file that lacks shards.
    Set<BlockIds> pending = new HashSet<>();
    for (TransferJob job : jobs()) {
      if (job.isDump && job.task.id() <= last && !isCompletedBy(job, deadline)) {
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
    while (!partials.endIfStored(partial)) {
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
    jobs().forEach(TransferJob::timeOut);
  }

  /**
   * Ends everything at close, after the workers have ended.
   *
   * @return how many blocks lacked shards
   */
  int endAll() {
    endWaiting();
    int unfinished = partials.size();
    partials.giveUpAll();
    opened.closeAll(health);
    return unfinished;
  }
}
