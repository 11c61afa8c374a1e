package ucm.store.file;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.FlushResult;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.api.TransferTask;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileOperations;
import ucm.platform.thread.CpuAffinity;
import ucm.platform.thread.ShardWorkers;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.BlockIndex;
import ucm.store.file.block.BlockRemover;
import ucm.store.file.block.BlockWriter;
import ucm.store.file.block.DeferredCleanup;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.IoEngine;
import ucm.store.file.config.KindMetrics;
import ucm.store.file.eviction.AccessTimeTable;
import ucm.store.file.eviction.BlockUses;
import ucm.store.file.eviction.CapacityManager;
import ucm.store.file.eviction.Collector;
import ucm.store.file.eviction.EvictionGuard;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.FolderTree;
import ucm.store.file.format.FolderWalk;
import ucm.store.file.format.StorageDirectories;
import ucm.store.file.health.DirectoryExecutors;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.health.DirectoryJob;
import ucm.store.file.health.FileProbe;
import ucm.store.file.health.TimeoutScheduler;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.lease.WriterLease;
import ucm.store.file.lookup.BlockLookup;
import ucm.store.file.lookup.IndexScan;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.space.SpaceScan;

/**
 * An open store: makes its parts in the order in which they need one another, starts them, and closes them in
 * an order in which none is needed any more.
 */
final class FileStoreRuntime {

  private static final Logger LOG = LoggerFactory.getLogger(FileStoreRuntime.class);

  // Without a capacity the times of last use are not urgent; Linux writes one a day.
  private static final long LEAST_BETWEEN_NOTES_NANOS = TimeUnit.HOURS.toNanos(1);

  final WriterLease[] leases;
  final IoQueues io;
  final BlockFiles files;
  final BlockLookup lookup;
  final DirectoryHealth health;
  final ShardWorkers workers;
  final DeferredCleanup cleanup;
  final BlockRemover remover;
  final IndexScan scan;
  final DirectoryJob scanning;
  final DeadWriters deadWriters;
  final DirectoryJob sweeps;
  final BlockUses uses;
  final @Nullable CapacityManager capacity;
  private final boolean notesLoadsOnly;
  final DirectoryExecutors executors;
  final FileTransfers transfers;
  final FileStoreMetrics metrics;
  final LongSupplier clock;
  final FileStoreConfig config;

  /**
   * Makes the parts; no thread runs yet.
   *
   * @param guard says which blocks the collector may remove; null for all
   * @param tasks those that have not completed
   * @param failures has the next flush report a block
   * @param queues see {@link FileStore#openQueues}
   */
  FileStoreRuntime(
      FileStoreConfig config,
      FileOperations operations,
      StoreContext context,
      @Nullable EvictionGuard guard,
      Supplier<List<TransferTask>> tasks,
      BlockWriter.Failures failures,
      Supplier<@Nullable IoQueues> queues) {
    this.config = config;
    cleanup = new DeferredCleanup(config.kind());
    clock = context.nanoClock();
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    metrics = new FileStoreMetrics(registry);
    BlockPaths paths =
        new BlockPaths(config.kind().name(), config.directories(), config.folderDigits());
    prepareDirectories(operations);
    io = openQueues(operations, queues);
    leases = new WriterLease[config.directories().size()];
    for (int i = 0; i < leases.length; i++) {
      leases[i] = new WriterLease(operations, paths, i);
    }
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    SpaceLimit space = new SpaceLimit(config, tree, clock, metrics.refusedBlocks);
    files = new BlockFiles(operations, paths, config, leases, space, clock, cleanup);
    health =
        new DirectoryHealth(
            config, operations, paths, context.metrics(), clock, this::directoryIsDown);
    space.aroundWaits(health::pause, health::enter);
    executors =
        new DirectoryExecutors(
            config.kind(),
            leases.length,
            health,
            clock,
            Math.min(health.patienceNanos(), timeoutNanos()));
    remover = new BlockRemover(files, health, cleanup, timeoutNanos());
    lookup = new BlockLookup(files, health, metrics, config);
    scan = new IndexScan(files, metrics, health);
    scanning = new DirectoryJob("scan", "the scan for blocks", executors, scan::run);
    workers = workers();
    deadWriters = new DeadWriters(operations, paths, leases, metrics);
    sweeps = new DirectoryJob("sweep", "the sweep for dead writers", executors, deadWriters::sweep);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    AccessTimeTable recorded =
        config.notesUses() ? new AccessTimeTable(keepsSpace ? 0 : LEAST_BETWEEN_NOTES_NANOS) : null;
    uses = new BlockUses(files, recorded, keepsSpace, executors, clock, timeoutNanos());
    transfers = new FileTransfers(this, tasks, failures);
    capacity = recorded == null || !keepsSpace ? null : capacity(space, recorded, registry, guard);
    notesLoadsOnly = recorded != null && !keepsSpace;
    registerGauges(registry);
    health.whenUp(this::directoryIsUp);
  }

  private void prepareDirectories(FileOperations operations) {
    for (String directory : config.directories()) {
      StorageDirectories.prepare(config.kind(), operations, directory);
      if (config.ioDirect() && !config.isScheduler()) {
        FileProbe.direct(config.kind(), operations, directory);
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
            config.waitingQueueDepth(),
            CpuAffinity.of(config.cores()));
    workers.whenThreadEnds(config.kind().faults());
    return workers;
  }

  private CapacityManager capacity(
      SpaceLimit space,
      AccessTimeTable recorded,
      StoreMetrics registry,
      @Nullable EvictionGuard guard) {
    FolderWalk walk =
        new FolderWalk(config.kind(), Math.max(1, config.gc().concurrency() / leases.length));
    Collector collector =
        new Collector(
            files,
            space,
            config.gc(),
            walk,
            executors,
            recorded,
            transfers::loading,
            registry,
            guard);
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
        uses,
        walk,
        executors,
        new SpaceScan(files.operations, space, walk, executors, leases),
        collector,
        deadWriters);
  }

  private void registerGauges(StoreMetrics registry) {
    BlockIndex index = files.index;
    registry.gauge("open_shards", "Shards accepted and not ended", transfers::openShards);
    registry.gauge(
        "partial_blocks", "Blocks of which shards are still to come", transfers.writer::unfinished);
    registry.gauge(
        "kept_open_blocks", "Blocks whose file is open for the next layer", files.opened::size);
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
    transfers.refuse();
    lookup.directoryIsDown();
    int most = workers.maxThreads() * leases.length;
    workers.compensate(Math.min(health.heldWorkers(), most));
  }

  /** Does what could not be done while a directory was down. */
  private void directoryIsUp(int directory) {
    sweeps.recovered(directory);
    scanning.recovered(directory);
    if (capacity != null) {
      capacity.wake();
    }
  }

  /** Starts what runs in the background. */
  void start() {
    if (config.acceptUnverified()) {
      LOG.warn(
          "{} has accept_unverified: true: a file without checksums in {} is served when its size"
              + " is that of a block, also when it is torn or holds another block",
          config.kind().name(),
          config.directories());
    }
    if (files.index.isOn()) {
      scanning.start();
    }
    if (!config.isScheduler()) {
      sweeps.start();
    }
    if (capacity != null) {
      capacity.start();
    }
    TimeoutScheduler timer = transfers.timer;
    transfers.begin();
    if (notesLoadsOnly) {
      timer.every(
          TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec()),
          () -> executors.execute("uses", 0, uses::flush));
    }
    health.start(timer, executors);
  }

  /** How long a task may take, and a close. */
  long timeoutNanos() {
    return TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
  }

  /** Ends everything, as soon as the file system lets go of it; {@code failed} tells what was lost. */
  void close(Supplier<FlushResult> failed) {
    deadWriters.stop();
    sweeps.stop();
    scan.stop();
    scanning.stop();
    lookup.close();
    transfers.expireParts(0);
    workers.close();
    int unfinished = transfers.close();
    cleanup.close();
    if (capacity != null) {
      capacity.close();
    }
    if (notesLoadsOnly) {
      uses.flush();
    }
    // A flush that is under way must report them as well.
    FlushResult dropped = failed.get();
    if (dropped.failedCount() > 0) {
      LOG.warn(
          "{} closes with {} blocks not stored, {} of them unfinished; first cause: {}",
          config.kind().name(),
          dropped.failedCount(),
          unfinished,
          dropped.cause() == null ? "none" : dropped.cause().getMessage());
    }
    try {
      sweeps.await();
      scanning.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    executors.close();
    io.close();
    for (WriterLease lease : leases) {
      lease.release();
    }
  }
}
