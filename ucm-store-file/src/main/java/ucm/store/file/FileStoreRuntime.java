package ucm.store.file;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.thread.CpuAffinity;
import ucm.platform.thread.ShardWorkers;
import ucm.platform.thread.ThreadEnd;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.BlockReader;
import ucm.store.file.block.BlockScan;
import ucm.store.file.block.BlockWriter;
import ucm.store.file.block.FileTask;
import ucm.store.file.block.KnownBlocks;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.block.ShardIo;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.config.IoEngine;
import ucm.store.file.eviction.BlockUses;
import ucm.store.file.eviction.Collector;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.Folder;
import ucm.store.file.lease.DeadWriters;
import ucm.store.file.lookup.BlockLookup;
import ucm.store.file.space.SpaceLimit;
import ucm.store.file.volume.FileProbe;
import ucm.store.file.volume.TimeoutScheduler;
import ucm.store.file.volume.Volume;
import ucm.store.file.volume.Volumes;

/**
 * An open store: makes its parts in the order in which they need one another, starts them, and closes them in
 * an order in which none is needed any more. In between it hands tasks to the workers, and sees to what these
 * leave open: files of blocks that are loaded in parts, and blocks that lack shards. Thread-safe.
 */
final class FileStoreRuntime {

  private static final Logger LOG = LoggerFactory.getLogger(FileStoreRuntime.class);
  private static final int CHECKS_PER_TIMEOUT = 4;
  // How many stores of this process write to a directory.
  private static final ConcurrentHashMap<String, Integer> WRITERS = new ConcurrentHashMap<>();

  final IoQueues io;
  final BlockFiles files;
  private final SpaceLimit space;
  final BlockLookup lookup;
  final Volumes volumes;
  final ShardWorkers workers;
  final DeadWriters deadWriters;
  final BlockUses uses;
  final @Nullable Collector collector;
  private final boolean notesLoadsOnly;
  // The thread that keeps time.
  private final TimeoutScheduler timer;
  private final Supplier<List<TransferTask>> tasks;
  // What is moved for tasks of other memory.
  private final Set<FileTask> parts = ConcurrentHashMap.newKeySet();
  // What a worker moves shards with.
  private final ThreadLocal<ShardIo> ios;
  private final BlockWriter writer;
  private final BlockReader reader;
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
      @Nullable Function<BlockIds, BitSet> guard,
      Supplier<List<TransferTask>> tasks,
      BlockWriter.Failures failures,
      Supplier<@Nullable IoQueues> queues) {
    this.config = config;
    clock = context.nanoClock();
    StoreMetrics registry = config.kind().metrics(context.metrics());
    metrics = new FileStoreMetrics(registry);
    BlockPaths paths =
        new BlockPaths(config.kind().name(), config.directories(), config.folderDigits());
    prepareDirectories(operations);
    io = openQueues(operations, queues);
    volumes =
        new Volumes(
            config.kind(),
            operations,
            paths,
            paths.directories().stream()
                .map(directory -> FileProbe.of(config, operations, directory))
                .toList(),
            config.health(),
            timeoutNanos(),
            registry,
            clock,
            this::directoryIsDown,
            this::directoryIsUp);
    space = new SpaceLimit(config, paths, volumes, metrics.refusedBlocks);
    files = new BlockFiles(operations, paths, config, space, clock, volumes, metrics);
    lookup = new BlockLookup(files, config);
    workers = workers();
    deadWriters = new DeadWriters(operations, paths, metrics.orphanFiles);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    notesLoadsOnly = config.notesUses() && !keepsSpace;
    BlockUses.Kind noted =
        keepsSpace
            ? BlockUses.Kind.ALL
            : notesLoadsOnly ? BlockUses.Kind.LOADS : BlockUses.Kind.NONE;
    LongSupplier wallClock = () -> TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis());
    uses = new BlockUses(operations, paths, noted, volumes, clock, wallClock, timeoutNanos());
    this.tasks = tasks;
    timer = new TimeoutScheduler(config.kind());
    ios = ThreadLocal.withInitial(() -> new ShardIo(files.format, io.newQueue()));
    writer = new BlockWriter(files, failures, ios);
    reader = new BlockReader(files, config.verify(), ios);
    collector =
        !keepsSpace
            ? null
            : new Collector(config, files, uses, deadWriters, this::loading, registry, guard);
    registerGauges(registry);
  }

  /** Makes the directories, and those above them, where they are missing; see that they can be used. */
  private void prepareDirectories(FileOperations operations) {
    for (String directory : config.directories()) {
      try {
        make(operations, directory);
      } catch (FileException e) {
        throw new StoreException(
            ("%s cannot make the directory %s of storage_backends: %s; make it for the user who"
                    + " runs this process, or name another")
                .formatted(config.kind().name(), directory, e.getMessage()),
            e);
      }
      if (operations.size(NativePath.of(directory + "/.")) != FileOperations.OTHER_TYPE) {
        throw new StoreException(
            "storage_backends names %s, which is no directory: remove what is there, or name another"
                .formatted(directory));
      }
      if (config.ioDirect() && !config.isScheduler()) {
        FileProbe.direct(config.kind(), operations, directory);
      }
    }
  }

  private static void make(FileOperations operations, String directory) {
    try {
      operations.makeFolder(NativePath.of(directory));
    } catch (FileException e) {
      if (e.errno() == Errno.ENOTDIR
          && operations.size(NativePath.of(directory)) != FileOperations.ABSENT) {
        // A link, perhaps to a directory, or what is none at all: the caller finds out.
        return;
      }
      int slash = directory.stripTrailing().lastIndexOf('/');
      if (e.errno() != Errno.ENOENT || slash <= 0) {
        throw e;
      }
      make(operations, directory.substring(0, slash));
      operations.makeFolder(NativePath.of(directory));
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
    registry.gauge("open_shards", "Shards accepted and not ended", this::openShards);
    registry.gauge(
        "partial_blocks", "Blocks of which shards are still to come", writer::unfinished);
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
  private void directoryIsDown(Volume volume) {
    moving().forEach(FileTask::refuse);
    lookup.directoryIsDown();
    int most = workers.maxThreads() * volumes.all().size();
    workers.compensate(Math.min(volumes.heldWorkers(), most));
  }

  /** Has the collector do what it could not do while a directory was down. */
  private void directoryIsUp(Volume volume) {
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
    if (!config.isScheduler()) {
      workers.startThreads(ios::get);
      volumes.beginJob("sweep", "the sweep for dead writers", this::sweep);
    }
    if (collector != null) {
      collector.start();
    } else if (files.index.isOn()) {
      BlockScan scan = new BlockScan(files, config.kind(), 0, volumes::isClosing);
      volumes.beginJob("scan", "the scan for blocks", scan::run);
    }
    // No more often than that: what an idle store takes of processors is mostly this.
    long interval = Math.min(OpenBlocks.IDLE_NANOS, timeoutNanos() / CHECKS_PER_TIMEOUT);
    timer.every(interval, this::tidy);
    if (notesLoadsOnly) {
      timer.every(
          TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec()),
          () -> volumes.get(0).execute("uses", uses::flush));
    }
    volumes.start(timer);
    if (!config.isScheduler()) {
      volumes.all().forEach(volume -> WRITERS.merge(volume.directory, 1, Integer::sum));
    }
  }

  private boolean sweep(Volume volume) {
    return deadWriters.sweep(volume.lease, () -> !volumes.isClosing());
  }

  /** What moves between host memory and files, and has not ended. */
  private List<FileTask> moving() {
    List<FileTask> moving = new ArrayList<>(parts);
    for (TransferTask task : tasks.get()) {
      if (task instanceof FileTask whole) {
        moving.add(whole);
      }
    }
    return moving;
  }

  /** Makes the task of a transfer. */
  FileTask newTask(long id, Transfer transfer, boolean isDump) {
    FileTask task = new FileTask(id, transfer, isDump, isDump ? writer : reader, volumes, clock);
    task.beforeTerminal(() -> ended(task, isDump ? metrics.dumps : metrics.loads));
    return task;
  }

  private void ended(FileTask task, FileStoreMetrics.Tasks ended) {
    long now = clock.getAsLong();
    ended.ended(task.transfer().byteSize(), task.waitNanos(now), task.nanos(now));
    if (LOG.isDebugEnabled()) {
      double millis = Math.round(task.nanos(now) / 1e3) / 1e3;
      LOG.debug("{} finished, cost {}ms.", task.name(config.kind().name()), millis);
    }
  }

  /** Moves what may be moved of a task. */
  void start(FileTask task) {
    start(task, workers::submit);
  }

  private void start(FileTask task, Consumer<FileTask> submit) {
    if (LOG.isDebugEnabled()) {
      LOG.debug("{} dispatching.", task.name(config.kind().name()));
    }
    if (!volumes.isAnyDown() || !task.refuseWhole()) {
      submit.accept(task);
      if (volumes.isAnyDown()) {
        // A directory that goes down from now on finds it among the open ones.
        task.refuse();
      }
    }
  }

  /** Moves host memory on behalf of a task of other memory. */
  FileTask move(TransferTask task, Transfer inHost) {
    FileTask part = newTask(task.id(), inHost, task.isDump());
    start(part, workers::submitPart);
    parts.add(part);
    part.whenTerminal(() -> parts.remove(part));
    return part;
  }

  /** Ends what was not begun of parts that have taken so long. */
  void expireParts(long nanos) {
    long now = clock.getAsLong();
    for (FileTask part : parts) {
      if (part.nanos(now) >= nanos) {
        part.expire(
            new StoreException(
                ("%s passed its deadline before all of it was begun: raise timeout_ms, or find out"
                        + " what holds up the file system")
                    .formatted(part)));
      }
    }
  }

  /** Shards accepted and not ended. */
  int openShards() {
    return moving().stream().mapToInt(task -> task.transfer().shardCount()).sum();
  }

  /** The blocks that are being loaded. */
  Set<BlockIds> loading() {
    Set<BlockIds> ids = new HashSet<>();
    for (FileTask task : moving()) {
      BlockIds of = task.writes() ? BlockIds.empty() : task.transfer().ids();
      for (int i = 0; i < of.size(); i++) {
        ids.add(BlockIds.of(of.high(i), of.low(i)));
      }
    }
    return ids;
  }

  /**
   * Ends parts that are late, closes files of which no more is read, and gives up blocks whose shards do
   * not come.
   */
  private void tidy() {
    expireParts(timeoutNanos());
    long now = clock.getAsLong();
    files.opened.closeIdle(now);
    writer.giveUpDue(now, timeoutNanos());
  }

  /** Whether blocks of so many bytes would be written; see {@link FileStore#hasRoom}. */
  boolean hasRoom(long bytes) {
    // Another store does not say what it is about to write, such as that of a pool of other pages.
    if (volumes.all().stream().anyMatch(volume -> WRITERS.getOrDefault(volume.directory, 0) > 1)) {
      return false;
    }
    long blocks = Math.ceilDiv(bytes, config.layout().blockSize());
    return space.hasRoom(blocks * Folder.inUnits(files.format.fileSize()));
  }

  /** Waits for the blocks that lack shards; see {@link FileStore#doFlush}. */
  void flush(long lastTask, long end, Set<BlockIds> pending) throws InterruptedException {
    tidy();
    writer.await(lastTask, end, pending);
  }

  /**
   * Removes blocks within the time of a task, on the thread of {@link Volumes#later}, so that a file system that
   * hangs does not hold the caller beyond that; returns those that have no file any more.
   */
  BitSet remove(BlockIds ids) {
    BitSet gone = new BitSet(ids.size());
    CountDownLatch done = new CountDownLatch(1);
    volumes.later(
        () -> {
          try {
            removeAll(ids, gone);
          } finally {
            done.countDown();
          }
        });
    try {
      if (!done.await(timeoutNanos(), TimeUnit.NANOSECONDS)) {
        LOG.warn("{}: removing {} blocks takes too long", config.kind().name(), ids.size());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    synchronized (gone) {
      return (BitSet) gone.clone();
    }
  }

  private void removeAll(BlockIds ids, BitSet gone) {
    for (int i = 0; i < ids.size(); i++) {
      if (volumes.of(ids.high(i), ids.low(i)).isDown()) {
        continue;
      }
      try {
        files.remove(ids.high(i), ids.low(i));
        synchronized (gone) {
          gone.set(i);
        }
      } catch (FileException e) {
        LOG.warn("{} cannot remove a block: {}", config.kind().name(), e.getMessage());
      }
    }
  }

  /** Takes the live values of another configuration with the same directories. */
  synchronized void reload(FileStoreConfig changed) {
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
    volumes.stopJobs();
    lookup.close();
    expireParts(0);
    workers.close();
    timer.close();
    int unfinished = writer.unfinished();
    writer.giveUpAll();
    files.opened.closeAll();
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
    ThreadEnd.await(
        ThreadEnd.FOREVER,
        _ -> {
          volumes.awaitJob("sweep");
          volumes.awaitJob("scan");
          return true;
        });
    volumes.close();
    io.close();
    volumes.all().forEach(volume -> volume.lease.release());
    if (!config.isScheduler()) {
      volumes
          .all()
          .forEach(
              volume ->
                  WRITERS.computeIfPresent(
                      volume.directory, (_, stores) -> stores == 1 ? null : stores - 1));
    }
  }
}
