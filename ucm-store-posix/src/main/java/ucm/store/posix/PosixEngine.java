package ucm.store.posix;

import java.time.Duration;
import java.util.BitSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.common.BlockPaths;
import ucm.store.common.CpuAffinity;
import ucm.store.common.FileSeam;
import ucm.store.common.ShardWorkers;

/**
 * An open store: workers, the jobs they have, and what looks after both.
 *
 * <p>A task ends with its last shard. The shards that make a block whole end after its commit, so that
 * a dump that went well and brought a block whole has made it durable, as far as configured.
 */
final class PosixEngine {

  private static final Logger LOG = LoggerFactory.getLogger(PosixStore.class);

  final BlockLookup lookup;

  private final PosixConfig config;
  private final LongSupplier clock;
  private final long timeoutNanos;
  private final PosixMetrics metrics;
  private final ShardWorkers workers;
  private final ThreadLocal<IoScratch> scratches;
  private final JobBoard board = new JobBoard();
  private final PartialBlocks partials = new PartialBlocks();
  private final DumpFailures failures = new DumpFailures();
  private final PartialWriter partialWriter;
  private final BackendHealth health;
  private final ShardMover writer;
  private final ShardMover reader;
  private final IoEngine io;
  private final WriterClaim[] claims;
  private final DeadWriters deadWriters;
  private final @Nullable LastUses uses;
  private final @Nullable SpaceKeeper keeper;
  // What is added to the clock to get the time since 1970.
  private final long wallOffsetNanos;
  private final Thread sweeper;
  private final BlockIndex index;
  private final IndexScan scan;
  private final Thread scanner;
  private final Watch watch;
  // The workers count groups of shards; the configured bound is one of shards.
  private final AtomicInteger openShards = new AtomicInteger();
  private final AtomicLong lastTask = new AtomicLong();

  PosixEngine(PosixConfig config, FileSeam seam, StoreContext context) {
    this.config = config;
    clock = context.nanoClock();
    wallOffsetNanos = TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis()) - clock.getAsLong();
    timeoutNanos = TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    metrics = PosixMetrics.of(context.metrics());
    BlockPaths paths = new BlockPaths(config.backends(), config.folderDigits());
    for (String backend : config.backends()) {
      Backends.prepare(seam, backend);
      if (config.ioDirect() && !config.isScheduler()) {
        DirectProbe.run(seam, backend);
      }
    }
    io = new IoEngine(config, seam);
    if (!config.isScheduler()) {
      io.probe();
    }
    claims = new WriterClaim[config.backends().size()];
    for (int i = 0; i < claims.length; i++) {
      claims[i] = new WriterClaim(seam, paths, i);
    }
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    SpaceLimit space = new SpaceLimit(config, tree, clock, metrics.refusedBlocks());
    index = new BlockIndex(config.indexMaxBlocks());
    BlockFiles files = new BlockFiles(seam, paths, config, claims, space, index);
    scratches = ThreadLocal.withInitial(() -> new IoScratch(files.format, io.newQueue()));
    health = new BackendHealth(config, seam, paths, context.metrics(), clock, this::backendIsDown);
    partialWriter = new PartialWriter(files, partials, failures, metrics, clock, health);
    writer =
        new GuardedMover(
            new BlockWriter(files, partials, partialWriter, failures, metrics, scratches, clock),
            health);
    Quarantine quarantine = new Quarantine(seam, paths, metrics);
    reader =
        new GuardedMover(
            new BlockReader(files, config.verify(), quarantine, metrics, scratches), health);
    DiskLookup disk = new DiskLookup(files, index, health, metrics, clock, config);
    lookup = new BlockLookup(index, disk, health, metrics, config.isExclusive());
    scan = new IndexScan(files, index, metrics);
    scanner = Thread.ofPlatform().daemon().name("ucm-posix-scan-0").unstarted(scan);
    workers =
        new ShardWorkers(
            "posix-io",
            config.dataTransConcurrency(),
            new ShardWorkers.Limits(
                config.waitingQueueDepth(),
                CommonKeys.WAITING_QUEUE_DEPTH.name(),
                config.runningQueueDepth(),
                CommonKeys.RUNNING_QUEUE_DEPTH.name()),
            CpuAffinity.of(config.cores()));
    watch = new Watch(this::endDue);
    deadWriters = new DeadWriters(seam, paths, claims, metrics);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    uses = keepsSpace ? new LastUses() : null;
    keeper = uses == null ? null : keeper(files, space, uses, context.metrics());
    sweeper = Thread.ofPlatform().daemon().name("ucm-posix-sweep-0").unstarted(deadWriters);
    context.metrics().gauge("posix_open_shards", "Shards accepted and not ended", openShards::get);
    context
        .metrics()
        .gauge("posix_partial_blocks", "Blocks of which shards are still to come", partials::size);
    context.metrics().gauge("posix_index_blocks", "Blocks known to have a file", index::size);
    context
        .metrics()
        .gauge(
            "posix_index_forgotten_blocks",
            "Blocks forgotten as the index was full",
            index::forgottenCount);
    context
        .metrics()
        .gauge(
            "posix_index_complete",
            "1 when all files there are known to the index, else 0",
            () -> index.isComplete() ? 1 : 0);
  }

  private SpaceKeeper keeper(
      BlockFiles files, SpaceLimit space, LastUses recorded, StoreMetrics registry) {
    FolderWalk walk = new FolderWalk(config.gc().concurrency());
    Collector collector =
        new Collector(
            files,
            space,
            config.gc(),
            walk,
            recorded,
            board::loading,
            Collector.Metrics.of(registry));
    registry.gauge("posix_used_bytes", "Bytes that all files take", space.used::used);
    registry.gauge(
        "posix_capacity_bytes", "Most bytes that all files may take", () -> space.capacityBytes);
    return new SpaceKeeper(
        config,
        files,
        space,
        this::wallNanos,
        recorded,
        walk,
        new SpaceScan(space.tree, space.used, walk, claims),
        collector,
        deadWriters);
  }

  private long wallNanos() {
    return clock.getAsLong() + wallOffsetNanos;
  }

  /** Notes that blocks were looked up and found; they come root first. */
  BitSet found(BlockIds ids, BitSet present) {
    LastUses recorded = uses;
    if (recorded != null) {
      recorded.record(ids, present, wallNanos());
    }
    return present;
  }

  /** Notes that the blocks up to the last one were looked up and found; they come root first. */
  int found(BlockIds ids, int last) {
    LastUses recorded = uses;
    if (recorded != null) {
      recorded.record(ids, last + 1, wallNanos());
    }
    return last;
  }

  /** Starts what runs in the background. */
  void start() {
    if (index.isOn()) {
      scanner.start();
    }
    if (!config.isScheduler()) {
      sweeper.start();
    }
    SpaceKeeper known = keeper;
    if (known != null) {
      known.start();
    }
    health.start();
  }

  /** Ends what waits for a backend that is down, and keeps workers for the others. */
  private void backendIsDown(int backend) {
    board.refuse(health);
    int most = workers.maxThreads() * config.backends().size();
    workers.standIn(Math.min(health.heldWorkers(), most));
  }

  /** Refuses a transfer that this store cannot move. */
  void check(Transfer transfer) {
    if (config.isScheduler()) {
      throw new StoreException(
          "Posix has the scheduler role (device_id: -1), which looks up and moves no data: set"
              + " device_id to that of the worker");
    }
    if (!transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "a transfer of "
              + transfer.layout()
              + " does not fit Posix, which is configured for "
              + config.layout());
    }
    if (!transfer.isHost()) {
      throw new StoreException(
          "Posix moves host memory, and the transfer names memory of a device: put a stage in front"
              + " that copies it, as in Cache|Posix");
    }
  }

  /** Accepts a transfer. */
  Task submit(Transfer transfer, boolean isDump) {
    TransferTask task = new TransferTask(lastTask.incrementAndGet(), transfer);
    TransferJob job = new TransferJob(task, isDump, isDump ? writer : reader, clock, timeoutNanos);
    reserve(transfer.shardCount());
    board.add(job);
    LastUses recorded = uses;
    if (recorded != null) {
      recorded.record(transfer, wallNanos());
    }
    if (LOG.isDebugEnabled()) {
      LOG.debug("{} dispatching.", name(job));
    }
    if (health.isAnyDown()) {
      // After the job is on the board: a backend that goes down from now on finds it there.
      job.refuse(health);
    }
    try {
      if (!task.check()) {
        workers.submit(job);
      }
    } catch (RuntimeException e) {
      board.remove(job);
      openShards.addAndGet(-transfer.shardCount());
      throw e;
    }
    task.whenTerminal(() -> finished(job));
    watch.lookIn(timeoutNanos);
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
    throw new QueueFullException("Posix shards", open, CommonKeys.RUNNING_QUEUE_DEPTH.name());
  }

  private void finished(TransferJob job) {
    board.remove(job);
    openShards.addAndGet(-job.transfer.shardCount());
    double millis = (clock.getAsLong() - job.startNanos) / 1e6;
    (job.isDump ? metrics.dumpMillis() : metrics.loadMillis()).record(millis);
    if (LOG.isDebugEnabled()) {
      LOG.debug("{} finished, cost {}ms.", name(job), Math.round(millis * 1000) / 1000.0);
    }
  }

  static String name(TransferJob job) {
    return "Posix task("
        + job.task.id()
        + ","
        + (job.isDump ? "Cache2Backend" : "Backend2Cache")
        + ","
        + job.transfer.shardCount()
        + ","
        + job.transfer.byteSize()
        + ")";
  }

  /** Ends what is due, and says when to look again. */
  private long endDue() {
    long now = clock.getAsLong();
    long jobs = board.expireDue(now);
    if (partials.size() == 0) {
      return jobs;
    }
    return Math.min(jobs, partialWriter.giveUpDue(now, timeoutNanos));
  }

  /** See {@link ucm.api.Store#flush}. */
  FlushResult flush(Duration timeout) throws InterruptedException {
    long deadline = System.nanoTime() + timeout.toNanos();
    long last = lastTask.get();
    endDue();
    // A block may be open in several tasks, and as a file that lacks shards.
    Set<BlockIds> pending = new HashSet<>();
    for (TransferJob job : board.dumps()) {
      if (job.task.id() <= last && !isTerminalBy(job, deadline)) {
        job.collectOpenBlocks(pending);
      }
    }
    for (PartialBlock partial : partials.all()) {
      if (partial.firstTask <= last && !partial.awaitEnd(deadline)) {
        pending.add(BlockIds.of(partial.idHigh, partial.idLow));
      }
    }
    return failures.take(pending.size());
  }

  private static boolean isTerminalBy(TransferJob job, long deadline) throws InterruptedException {
    try {
      long left = Math.max(0, deadline - System.nanoTime());
      job.task.await(Duration.ofNanos(left));
      return true;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }

  /** The deadline of a task. */
  long timeoutNanos() {
    return timeoutNanos;
  }

  /** Waits until what dead writers left behind is removed. */
  void awaitSweep() throws InterruptedException {
    sweeper.join();
  }

  /** What looks after the space, when there is a capacity; for tests. */
  @Nullable SpaceKeeper keeper() {
    return keeper;
  }

  /** Waits until the files that were there at the start are in the index. */
  void awaitScan() throws InterruptedException {
    scanner.join();
  }

  /** The health of the backends, for tests. */
  BackendHealth health() {
    return health;
  }

  /**
   * Ends everything: what is accepted within the deadline of a task, and what the file system holds
   * when it lets go, however long that takes. See {@link BoundedClose}.
   */
  void close() {
    deadWriters.stop();
    scan.stop();
    lookup.close();
    boolean drained = workers.close(Duration.ofNanos(timeoutNanos));
    board.expireAll();
    if (!drained) {
      LOG.warn(
          "Posix closes while the file system still holds {} shards; it ends when they do",
          openShards.get());
      workers.close();
    }
    watch.close();
    int unfinished = partials.size();
    partialWriter.giveUpAll();
    SpaceKeeper known = keeper;
    if (known != null) {
      known.close();
    }
    scratches.remove();
    FlushResult dropped = failures.take(0);
    if (dropped.failedCount() > 0) {
      LOG.warn(
          "Posix closes with {} blocks not stored, {} of them unfinished; first cause: {}",
          dropped.failedCount(),
          unfinished,
          dropped.cause() == null ? "none" : dropped.cause().getMessage());
    }
    join(sweeper);
    join(scanner);
    health.close();
    io.close();
    for (WriterClaim claim : claims) {
      claim.release();
    }
  }

  private static void join(Thread thread) {
    try {
      // Not every store starts every thread.
      if (thread.getState() != Thread.State.NEW) {
        thread.join();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
