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
import ucm.platform.libc.Libc;
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

  // Without a capacity the times of last use are not urgent; Linux writes one a day.
  private static final long LEAST_BETWEEN_NOTES_NANOS = TimeUnit.HOURS.toNanos(1);

  final WriterLease[] leases;
  final IoQueues io;
  final OpenBlocks opened;
  final BlockLookup lookup;
  final DirectoryHealth health;
  final ShardWorkers workers;
  final DumpFailures failures = new DumpFailures();
  final DeferredCleanup cleanup;
  final BlockRemover remover;
  final BlockIndex index;
  final IndexFill fill;
  final DirectoryJobs scanning;
  final DeadWriters deadWriters;
  final DirectoryJobs sweeps;
  final BlockUses uses;
  final @Nullable CapacityManager capacity;
  final @Nullable AccessTimeManager accessTimes;
  final UnfinishedDumps unfinished;
  final TimeoutScheduler timeouts;
  final TaskSubmission intake;

  private final FileStoreConfig config;
  private final InFlightTasks inFlight = new InFlightTasks();

  FileStoreComponents(
      FileStoreConfig config,
      FileOperations operations,
      StoreContext context,
      Supplier<@Nullable IoQueues> queues) {
    this.config = config;
    cleanup = new DeferredCleanup(config.kind());
    LongSupplier clock = context.nanoClock();
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    FileStoreMetrics metrics = FileStoreMetrics.of(registry);
    BlockPaths paths =
        new BlockPaths(config.kind().name(), config.directories(), config.folderDigits());
    prepareDirectories(operations);
    io = openQueues(operations, queues);
    leases = new WriterLease[config.directories().size()];
    for (int i = 0; i < leases.length; i++) {
      leases[i] = new WriterLease(operations, paths, i);
    }
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    SpaceLimit space = new SpaceLimit(config, tree, clock, metrics.refusedBlocks());
    index = new BlockIndex(config.indexMaxBlocks());
    int kept = Libc.openFileLimit() / PARTS_OF_DESCRIPTORS;
    opened = new OpenBlocks(operations, paths, clock, cleanup, Math.min(OpenBlocks.MAX_KEPT, kept));
    BlockFiles files = new BlockFiles(operations, paths, config, leases, space, index, opened);
    ThreadLocal<IoScratch> scratches =
        ThreadLocal.withInitial(() -> new IoScratch(files.format, io.newQueue()));
    health =
        new DirectoryHealth(
            config, operations, paths, context.metrics(), clock, this::directoryIsDown);
    space.aroundWaits(health::pause, health::resume);
    remover = new BlockRemover(files, space, health, cleanup, timeoutNanos());
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
            cleanup);
    BlockWriter writer =
        new BlockWriter(files, partials, partialWriter, failures, metrics, scratches, clock);
    Quarantine quarantine = new Quarantine(operations, paths, metrics);
    BlockReader reader =
        new BlockReader(files, opened, config.verify(), quarantine, metrics, scratches);
    DiskLookup disk = new DiskLookup(files, index, health, metrics, clock, config);
    lookup = new BlockLookup(index, disk, health, metrics, config.isExclusive());
    int directories = config.directories().size();
    fill = new IndexFill(files, index, metrics, health);
    scanning =
        new DirectoryJobs(
            config.kind(), "scan", "the scan for blocks", directories, health, fill::run);
    workers = workers();
    unfinished =
        new UnfinishedDumps(
            inFlight, partials, partialWriter, opened, health, failures, clock, config.timeoutMs());
    timeouts = new TimeoutScheduler(config.kind().newThread("timeouts", 0), unfinished::endDue);
    deadWriters = new DeadWriters(operations, paths, leases, metrics);
    sweeps =
        new DirectoryJobs(
            config.kind(),
            "sweep",
            "the sweep for dead writers",
            directories,
            health,
            deadWriters::sweep);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    AccessTimeTable recorded =
        config.notesUses() ? new AccessTimeTable(keepsSpace ? 0 : LEAST_BETWEEN_NOTES_NANOS) : null;
    uses = new BlockUses(recorded, keepsSpace, clock);
    capacity = recorded == null || !keepsSpace ? null : capacity(files, space, recorded, context);
    accessTimes = recorded == null || keepsSpace ? null : accessTimes(files, recorded, clock);
    intake =
        new TaskSubmission(
            config,
            clock,
            metrics,
            workers,
            inFlight,
            health,
            uses,
            timeouts,
            opened,
            new CircuitBreakingMover(writer, health),
            new CircuitBreakingMover(reader, health));
    registerGauges(registry, partials);
    health.whenUp(this::directoryIsUp);
  }

  private void prepareDirectories(FileOperations operations) {
    for (String directory : config.directories()) {
      StorageDirectories.prepare(config.kind(), operations, directory);
      if (config.ioDirect() && !config.isScheduler()) {
        DirectProbe.run(config.kind(), operations, directory);
      }
    }
  }

  private IoQueues openQueues(FileOperations operations, Supplier<@Nullable IoQueues> queues) {
    IoQueues others = config.isScheduler() ? null : queues.get();
    if (others != null) {
      return others;
    }
    IoEngine engine = new IoEngine(config, operations);
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
                // What is let in has been counted, and counted off before its task completes.
                Integer.MAX_VALUE,
                CommonKeys.RUNNING_QUEUE_DEPTH.name()),
            CpuAffinity.of(config.cores()));
    workers.whenThreadEnds(config.kind().faults());
    return workers;
  }

  private CapacityManager capacity(
      BlockFiles files, SpaceLimit space, AccessTimeTable recorded, StoreContext context) {
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    int directories = config.directories().size();
    FolderWalk walk =
        new FolderWalk(config.kind(), Math.max(1, config.gc().concurrency() / directories));
    DirectoryExecutors executors = executors(context.nanoClock());
    Collector collector =
        new Collector(
            files,
            space,
            config.gc(),
            walk,
            executors,
            recorded,
            inFlight::loading,
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
        flusher(files, recorded, executors),
        walk,
        executors,
        new SpaceScan(files.operations, space.tree, space.used, walk, executors, leases),
        collector,
        deadWriters);
  }

  private AccessTimeManager accessTimes(
      BlockFiles files, AccessTimeTable recorded, LongSupplier clock) {
    DirectoryExecutors executors = executors(clock);
    return new AccessTimeManager(
        config.kind(),
        flusher(files, recorded, executors),
        executors,
        TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec()));
  }

  private AccessTimeFlusher flusher(
      BlockFiles files, AccessTimeTable recorded, FolderExecutor executors) {
    return new AccessTimeFlusher(files, recorded, executors, uses::wallNanos, timeoutNanos());
  }

  private DirectoryExecutors executors(LongSupplier clock) {
    long patience = Math.min(health.patienceNanos(), timeoutNanos());
    return new DirectoryExecutors(
        config.kind(), config.directories().size(), health, clock, patience);
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

  /** Ends what waits for a directory that is down, and keeps workers for the others. */
  private void directoryIsDown(int directory) {
    inFlight.refuse(health);
    lookup.directoryIsDown();
    int most = workers.maxThreads() * config.directories().size();
    workers.compensate(Math.min(health.heldWorkers(), most));
  }

  /** Does what could not be done while a directory was down. */
  private void directoryIsUp(int directory) {
    sweeps.recovered(directory);
    scanning.recovered(directory);
    CapacityManager known = capacity;
    if (known != null) {
      known.wake();
    }
  }

  /** How long a task may take, and a close. */
  long timeoutNanos() {
    return TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
  }
}
