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
import ucm.store.file.block.BlockRemover;
import ucm.store.file.block.BlockWriter;
import ucm.store.file.block.KnownBlocks;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.IoEngine;
import ucm.store.file.config.KindMetrics;
import ucm.store.file.eviction.BlockUses;
import ucm.store.file.eviction.Collector;
import ucm.store.file.eviction.EvictionGuard;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.FolderTree;
import ucm.store.file.format.StorageDirectories;
import ucm.store.file.health.FileProbe;
import ucm.store.file.health.TimeoutScheduler;
import ucm.store.file.health.Volumes;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.lease.WriterLease;
import ucm.store.file.lookup.BlockLookup;
import ucm.store.file.lookup.IndexScan;
import ucm.store.file.space.SpaceLimit;

/**
 * An open store: makes its parts in the order in which they need one another, starts them, and closes them in
 * an order in which none is needed any more.
 */
final class FileStoreRuntime {

  private static final Logger LOG = LoggerFactory.getLogger(FileStoreRuntime.class);

  final WriterLease[] leases;
  final IoQueues io;
  final BlockFiles files;
  private final SpaceLimit space;
  final BlockLookup lookup;
  final Volumes volumes;
  final ShardWorkers workers;
  final BlockRemover remover;
  final IndexScan scan;
  final DeadWriters deadWriters;
  final BlockUses uses;
  final @Nullable Collector collector;
  private final boolean notesLoadsOnly;
  final FileTransfers transfers;
  final FileStoreMetrics metrics;
  final LongSupplier clock;
  final FileStoreConfig config;

  /** What is in force of the keys that are live. */
  volatile FileStoreConfig limits;

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
    limits = config;
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
    volumes =
        new Volumes(
            config,
            operations,
            paths,
            context.metrics(),
            clock,
            this::directoryIsDown,
            this::directoryIsUp);
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    space = new SpaceLimit(config, tree, clock, metrics.refusedBlocks);
    space.aroundWaits(volumes::pause, volumes::enter);
    files = new BlockFiles(operations, paths, config, leases, space, clock, volumes);
    remover = new BlockRemover(files, volumes, timeoutNanos());
    lookup = new BlockLookup(files, volumes, metrics, config);
    scan = new IndexScan(files, metrics, volumes);
    workers = workers();
    deadWriters = new DeadWriters(operations, paths, leases, metrics);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    notesLoadsOnly = config.notesUses() && !keepsSpace;
    BlockUses.Kind noted =
        keepsSpace
            ? BlockUses.Kind.ALL
            : notesLoadsOnly ? BlockUses.Kind.LOADS : BlockUses.Kind.NONE;
    uses = new BlockUses(operations, paths, noted, volumes, clock, timeoutNanos());
    transfers = new FileTransfers(this, tasks, failures);
    collector =
        !keepsSpace
            ? null
            : new Collector(
                config,
                files,
                space,
                uses,
                volumes,
                leases,
                deadWriters,
                transfers::loading,
                registry,
                guard);
    registerGauges(registry);
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

  private void registerGauges(StoreMetrics registry) {
    KnownBlocks index = files.index;
    registry.gauge("open_shards", "Shards accepted and not ended", transfers::openShards);
    registry.gauge(
        "partial_blocks", "Blocks of which shards are still to come", transfers.writer::unfinished);
    registry.gauge(
        "kept_open_blocks", "Blocks whose file is open for the next layer", files.opened::size);
    registry.gauge("index_blocks", "Blocks known to have a file", index::size);
    registry.gauge(
        "index_forgotten_blocks", "Blocks forgotten as the index was full", index::forgotten);
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
    workers.compensate(Math.min(volumes.heldWorkers(), most));
  }

  /** Has the collector do what it could not do while a directory was down. */
  private void directoryIsUp(int directory) {
    if (collector != null) {
      collector.wake();
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
      volumes.begin("scan", "the scan for blocks", scan::run);
    }
    if (!config.isScheduler()) {
      volumes.begin("sweep", "the sweep for dead writers", deadWriters::sweep);
    }
    if (collector != null) {
      collector.start();
    }
    TimeoutScheduler timer = transfers.timer;
    transfers.begin();
    if (notesLoadsOnly) {
      timer.every(
          TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec()),
          () -> volumes.execute("uses", 0, uses::flush));
    }
    volumes.start(timer);
  }

  /** Takes the live values of another configuration with the same directories. */
  synchronized void reload(FileStoreConfig changed) {
    limits = changed;
    space.reload(changed);
    if (collector != null) {
      collector.reload(changed.gc());
    }
  }

  /** How long a task may take, and a close. */
  long timeoutNanos() {
    return TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
  }

  /** Ends everything, as soon as the file system lets go of it; {@code failed} tells what was lost. */
  void close(Supplier<FlushResult> failed) {
    deadWriters.stop();
    scan.stop();
    volumes.stopJobs();
    lookup.close();
    transfers.expireParts(0);
    workers.close();
    int unfinished = transfers.close();
    volumes.awaitCleanup();
    if (collector != null) {
      collector.close();
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
      volumes.awaitJob("sweep");
      volumes.awaitJob("scan");
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    volumes.close();
    io.close();
    for (WriterLease lease : leases) {
      lease.release();
    }
  }
}
