package ucm.store.file;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.OpenFileLimit;
import ucm.platform.thread.CpuAffinity;
import ucm.platform.thread.ShardWorkers;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.BlockReader;
import ucm.store.file.block.BlockRemover;
import ucm.store.file.block.BlockWriter;
import ucm.store.file.block.DeferredCleanup;
import ucm.store.file.block.IoScratch;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.block.OpenTemps;
import ucm.store.file.block.PartialBlocks;
import ucm.store.file.block.PartialWriter;
import ucm.store.file.block.Quarantine;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.IoEngine;
import ucm.store.file.config.KindMetrics;
import ucm.store.file.eviction.AccessTimeFlusher;
import ucm.store.file.eviction.AccessTimeManager;
import ucm.store.file.eviction.CapacityManager;
import ucm.store.file.eviction.Collector;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.FolderTree;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.format.StorageDirectories;
import ucm.store.file.health.DirectProbe;
import ucm.store.file.health.DirectoryExecutors;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.health.DirectoryJobs;
import ucm.store.file.health.FolderExecutor;
import ucm.store.file.health.TimeoutScheduler;
import ucm.store.file.index.AccessTimeTable;
import ucm.store.file.index.BlockIndex;
import ucm.store.file.index.BlockUses;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.lease.WriterLease;
import ucm.store.file.lookup.BlockLookup;
import ucm.store.file.lookup.DiskLookup;
import ucm.store.file.lookup.IndexFill;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.space.SpaceScan;
import ucm.store.file.transfer.CircuitBreakingMover;
import ucm.store.file.transfer.DumpFailures;
import ucm.store.file.transfer.InFlightTasks;

/**
 * The parts of an open store, made in the order in which they need one another, and their gauges. No
 * thread runs yet. {@link FileStoreRuntime} starts and closes them.
 */
final class FileStoreComponents {

  // Of the files that the process may have open, this part at the most is kept open to be written
  // further, and as many to be read further.
  private static final int PARTS_OF_DESCRIPTORS = 8;

  // Without a capacity nobody waits for the times of last use; Linux is content with one a day.
  private static final long LEAST_BETWEEN_NOTES_NANOS = TimeUnit.HOURS.toNanos(1);

  final WriterLease[] claims;
  final IoQueues io;
  final OpenBlocks opened;
  final BlockLookup lookup;
  final DirectoryHealth health;
  final ShardWorkers workers;
  final DumpFailures failures = new DumpFailures();
  final DeferredCleanup chores;
  final BlockRemover remover;
  final BlockIndex index;
  final IndexFill fill;
  final DirectoryJobs scanning;
  final DeadWriters deadWriters;
  final DirectoryJobs sweeps;
  final BlockUses uses;
  final @Nullable CapacityManager keeper;
  final @Nullable AccessTimeManager useKeeper;
  final UnfinishedDumps unfinished;
  final TimeoutScheduler watch;
  final TaskSubmission intake;

  private final FileStoreConfig config;
  private final InFlightTasks board = new InFlightTasks();

  FileStoreComponents(
      FileStoreConfig config,
      FileOperations seam,
      StoreContext context,
      Supplier<@Nullable IoQueues> queues) {
    this.config = config;
    chores = new DeferredCleanup(config.kind());
    LongSupplier clock = context.nanoClock();
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    FileStoreMetrics metrics = FileStoreMetrics.of(registry);
    BlockPaths paths =
        new BlockPaths(config.kind().name(), config.backends(), config.folderDigits());
    prepareBackends(seam);
    io = openQueues(seam, queues);
    claims = new WriterLease[config.backends().size()];
    for (int i = 0; i < claims.length; i++) {
      claims[i] = new WriterLease(seam, paths, i);
    }
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    SpaceLimit space = new SpaceLimit(config, tree, clock, metrics.refusedBlocks());
    index = new BlockIndex(config.indexMaxBlocks());
    int kept = OpenFileLimit.now() / PARTS_OF_DESCRIPTORS;
    opened = new OpenBlocks(seam, paths, clock, chores, Math.min(OpenBlocks.MAX_KEPT, kept));
    BlockFiles files = new BlockFiles(seam, paths, config, claims, space, index, opened);
    ThreadLocal<IoScratch> scratches =
        ThreadLocal.withInitial(() -> new IoScratch(files.format, io.newQueue()));
    health =
        new DirectoryHealth(config, seam, paths, context.metrics(), clock, this::backendIsDown);
    space.aroundWaits(health::pause, health::resume);
    remover = new BlockRemover(files, space, health, chores, timeoutNanos());
    PartialBlocks partials = new PartialBlocks();
    PartialWriter partialWriter =
        new PartialWriter(
            files,
            partials,
            new OpenTemps(Math.min(OpenTemps.MAX_KEPT, kept)),
            failures,
            metrics,
            clock,
            health,
            chores);
    BlockWriter writer =
        new BlockWriter(files, partials, partialWriter, failures, metrics, scratches, clock);
    Quarantine quarantine = new Quarantine(seam, paths, metrics);
    BlockReader reader =
        new BlockReader(files, opened, config.verify(), quarantine, metrics, scratches);
    DiskLookup disk = new DiskLookup(files, index, health, metrics, clock, config);
    lookup = new BlockLookup(index, disk, health, metrics, config.isExclusive());
    int backends = config.backends().size();
    fill = new IndexFill(files, index, metrics, health);
    scanning =
        new DirectoryJobs(
            config.kind(), "scan", "the scan for blocks", backends, health, fill::run);
    workers = workers();
    unfinished =
        new UnfinishedDumps(
            board, partials, partialWriter, opened, health, failures, clock, config.timeoutMs());
    watch = new TimeoutScheduler(config.kind(), unfinished::endDue);
    deadWriters = new DeadWriters(seam, paths, claims, metrics);
    sweeps =
        new DirectoryJobs(
            config.kind(),
            "sweep",
            "the sweep for dead writers",
            backends,
            health,
            deadWriters::sweep);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    AccessTimeTable recorded =
        config.notesUses() ? new AccessTimeTable(keepsSpace ? 0 : LEAST_BETWEEN_NOTES_NANOS) : null;
    uses = new BlockUses(recorded, keepsSpace, clock);
    keeper = recorded == null || !keepsSpace ? null : keeper(files, space, recorded, context);
    useKeeper = recorded == null || keepsSpace ? null : useKeeper(files, recorded, clock);
    intake =
        new TaskSubmission(
            config,
            clock,
            metrics,
            workers,
            board,
            health,
            uses,
            watch,
            opened,
            new CircuitBreakingMover(writer, health),
            new CircuitBreakingMover(reader, health));
    registerGauges(registry, partials);
    health.whenUp(this::backendIsUp);
  }

  private void prepareBackends(FileOperations seam) {
    for (String backend : config.backends()) {
      StorageDirectories.prepare(config.kind(), seam, backend);
      if (config.ioDirect() && !config.isScheduler()) {
        DirectProbe.run(config.kind(), seam, backend);
      }
    }
  }

  private IoQueues openQueues(FileOperations seam, Supplier<@Nullable IoQueues> queues) {
    IoQueues others = config.isScheduler() ? null : queues.get();
    if (others != null) {
      return others;
    }
    IoEngine engine = new IoEngine(config, seam);
    if (!config.isScheduler()) {
      engine.probe();
    }
    return engine;
  }

  private ShardWorkers workers() {
    ShardWorkers workers =
        new ShardWorkers(
            config.kind().prefix() + "-io",
            config.dataTransConcurrency(),
            new ShardWorkers.Limits(
                config.waitingQueueDepth(),
                CommonKeys.WAITING_QUEUE_DEPTH.name(),
                // What is let in has been counted, and counted off before its task is terminal.
                Integer.MAX_VALUE,
                CommonKeys.RUNNING_QUEUE_DEPTH.name()),
            CpuAffinity.of(config.cores()));
    workers.whenThreadEnds(config.kind().faults());
    return workers;
  }

  private CapacityManager keeper(
      BlockFiles files, SpaceLimit space, AccessTimeTable recorded, StoreContext context) {
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    int backends = config.backends().size();
    FolderWalk walk =
        new FolderWalk(config.kind(), Math.max(1, config.gc().concurrency() / backends));
    DirectoryExecutors lanes = lanes(context.nanoClock());
    Collector collector =
        new Collector(
            files,
            space,
            config.gc(),
            walk,
            lanes,
            recorded,
            board::loading,
            Collector.Metrics.of(registry));
    registry.gauge(
        "gc_running",
        "1 while this process removes blocks to win back space, else 0",
        () -> collector.isRunning() ? 1 : 0);
    registry.gauge("used_bytes", "Bytes that all files take", space.used::used);
    registry.gauge(
        "capacity_bytes", "Most bytes that all files may take", () -> space.capacityBytes);
    return new CapacityManager(
        config,
        files,
        space,
        teller(files, recorded, lanes),
        walk,
        lanes,
        new SpaceScan(files.seam, space.tree, space.used, walk, lanes, claims),
        collector,
        deadWriters);
  }

  private AccessTimeManager useKeeper(
      BlockFiles files, AccessTimeTable recorded, LongSupplier clock) {
    DirectoryExecutors lanes = lanes(clock);
    return new AccessTimeManager(
        config.kind(),
        teller(files, recorded, lanes),
        lanes,
        TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec()));
  }

  private AccessTimeFlusher teller(
      BlockFiles files, AccessTimeTable recorded, FolderExecutor lanes) {
    return new AccessTimeFlusher(files, recorded, lanes, uses::wallNanos, timeoutNanos());
  }

  private DirectoryExecutors lanes(LongSupplier clock) {
    long patience = Math.min(health.patienceNanos(), timeoutNanos());
    return new DirectoryExecutors(config.kind(), config.backends().size(), health, clock, patience);
  }

  private void registerGauges(StoreMetrics registry, PartialBlocks partials) {
    registry.gauge("open_shards", "Shards accepted and not ended", intake::openShards);
    registry.gauge("partial_blocks", "Blocks of which shards are still to come", partials::size);
    registry.gauge(
        "kept_open_blocks", "Blocks whose file is open for the next layer", opened::size);
    registry.gauge("index_blocks", "Blocks known to have a file", index::size);
    registry.gauge(
        "index_forgotten_blocks", "Blocks forgotten as the index was full", index::forgottenCount);
    registry.gauge(
        "index_complete",
        "1 when all files there are known to the index, else 0",
        () -> index.isComplete() ? 1 : 0);
  }

  /** Ends what waits for a backend that is down, and keeps workers for the others. */
  private void backendIsDown(int backend) {
    board.refuse(health);
    lookup.backendIsDown();
    int most = workers.maxThreads() * config.backends().size();
    workers.standIn(Math.min(health.heldWorkers(), most));
  }

  /** Makes up for what could not be done while a backend was down. */
  private void backendIsUp(int backend) {
    sweeps.recovered(backend);
    scanning.recovered(backend);
    CapacityManager known = keeper;
    if (known != null) {
      known.wake();
    }
  }

  /** How long a task may take, and a close. */
  long timeoutNanos() {
    return TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
  }
}
