package ucm.store.file;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.CommonKeys;
import ucm.api.QueueFullException;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.thread.ShardWorkers;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.StoreKind;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.health.TimeoutScheduler;
import ucm.store.file.index.BlockUses;
import ucm.store.file.transfer.InFlightTasks;
import ucm.store.file.transfer.ShardMover;
import ucm.store.file.transfer.TransferJob;

/** Takes transfers in, hands them to the workers and sees them off when they end. Thread-safe. */
public final class TaskSubmission {

  private static final Logger LOG = LoggerFactory.getLogger(TaskSubmission.class);

  private final FileStoreConfig config;
  private final LongSupplier clock;
  private final long timeoutNanos;
  private final FileStoreMetrics metrics;
  private final ShardWorkers workers;
  private final InFlightTasks inFlight;
  private final DirectoryHealth health;
  private final BlockUses uses;
  private final TimeoutScheduler timeouts;
  private final OpenBlocks opened;
  private final ShardMover writer;
  private final ShardMover reader;
  // The workers count groups of shards; the configured bound is one of shards.
  private final AtomicInteger openShards = new AtomicInteger();
  private final AtomicLong lastTask = new AtomicLong();

  TaskSubmission(
      FileStoreConfig config,
      LongSupplier clock,
      FileStoreMetrics metrics,
      ShardWorkers workers,
      InFlightTasks inFlight,
      DirectoryHealth health,
      BlockUses uses,
      TimeoutScheduler timeouts,
      OpenBlocks opened,
      ShardMover writer,
      ShardMover reader) {
    this.config = config;
    this.clock = clock;
    this.timeoutNanos = TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    this.metrics = metrics;
    this.workers = workers;
    this.inFlight = inFlight;
    this.health = health;
    this.uses = uses;
    this.timeouts = timeouts;
    this.opened = opened;
    this.writer = writer;
    this.reader = reader;
  }

  /** Shards accepted and not ended. */
  int openShards() {
    return openShards.get();
  }

  /** The number of the task accepted last. */
  long lastTask() {
    return lastTask.get();
  }

  /** Refuses a transfer that this store cannot move. */
  void check(Transfer transfer) {
    if (config.isScheduler()) {
      throw new StoreException(
          config.kind().name()
              + " has the scheduler role (device_id: -1), which looks up and moves no data: set"
              + " device_id to that of the worker");
    }
    if (!transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "a transfer of "
              + transfer.layout()
              + " does not fit "
              + config.kind().name()
              + ", which is configured for "
              + config.layout());
    }
    if (!transfer.isHost()) {
      throw new StoreException(
          config.kind().name()
              + " moves host memory, and the transfer names memory of a device: put an upper"
              + " stage that copies it, as in Cache|"
              + config.kind().name());
    }
  }

  /** Accepts a transfer. */
  Task submit(Transfer transfer, boolean isDump) {
    TransferTask task = new TransferTask(lastTask.incrementAndGet(), transfer);
    TransferJob job = new TransferJob(task, isDump, isDump ? writer : reader, clock, timeoutNanos);
    reserve(transfer.shardCount());
    // Before others can see it, and so end it.
    task.beforeTerminal(() -> finished(job));
    if (LOG.isDebugEnabled()) {
      LOG.debug("{} dispatching.", name(config.kind(), job));
    }
    if (!health.isAnyDown() || !job.refuseWhole(health)) {
      try {
        workers.submit(job);
      } catch (RuntimeException e) {
        // No other thread has seen it: none of its shards has ended or was reported.
        openShards.addAndGet(-transfer.shardCount());
        throw e;
      }
    }
    inFlight.add(job);
    if (health.isAnyDown()) {
      // After the job is among the tasks in flight: a directory that goes down from now on finds it
      // there.
      job.refuse(health);
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
        config.kind().name() + " shards", open, CommonKeys.RUNNING_QUEUE_DEPTH.name());
  }

  private void finished(TransferJob job) {
    inFlight.remove(job);
    openShards.addAndGet(-job.transfer.shardCount());
    if (opened.size() > 0) {
      timeouts.checkIn(OpenBlocks.IDLE_NANOS);
    }
    long end = clock.getAsLong();
    double millis = (end - job.startNanos) / 1e6;
    (job.isDump ? metrics.dumps() : metrics.loads())
        .ended(job.transfer.byteSize(), job.waitNanos(end), end - job.startNanos);
    if (LOG.isDebugEnabled()) {
      LOG.debug(
          "{} finished, cost {}ms.", name(config.kind(), job), Math.round(millis * 1000) / 1000.0);
    }
  }

  public static String name(StoreKind kind, TransferJob job) {
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
}
