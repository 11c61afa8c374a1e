package ucm.store.posix;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.CommonKeys;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.store.common.BlockPaths;
import ucm.store.common.CpuAffinity;
import ucm.store.common.FileSeam;
import ucm.store.common.IoQueues;
import ucm.store.common.OpenFileLimit;
import ucm.store.common.ShardWorkers;

/**
 * The parts of an open store, made in the order in which they need one another, and their gauges. No
 * thread runs yet. {@link PosixEngine} starts and closes them.
 */
final class PosixParts {

  // Of the files that the process may have open, this part at the most is kept open to be written
  // further, and as many to be read further.
  private static final int PARTS_OF_DESCRIPTORS = 8;

  // Without a capacity nobody waits for the times of last use; Linux is content with one a day.
  private static final long LEAST_BETWEEN_NOTES_NANOS = TimeUnit.HOURS.toNanos(1);

  final WriterClaim[] claims;
  final IoQueues io;
  final OpenBlocks opened;
  final BlockLookup lookup;
  final BackendHealth health;
  final ShardWorkers workers;
  final DumpFailures failures = new DumpFailures();
  final FileChores chores;
  final BlockRemover remover;
  final BlockIndex index;
  final IndexFill fill;
  final BackendErrands scanning;
  final DeadWriters deadWriters;
  final BackendErrands sweeps;
  final BlockUses uses;
  final @Nullable SpaceKeeper keeper;
  final @Nullable UseKeeper useKeeper;
  final UnfinishedWork unfinished;
  final Watch watch;
  final TaskIntake intake;

  private final PosixConfig config;
  private final JobBoard board = new JobBoard();

  PosixParts(
      PosixConfig config,
      FileSeam seam,
      StoreContext context,
      Supplier<@Nullable IoQueues> queues) {
    this.config = config;
    chores = new FileChores(config.kind());
    LongSupplier clock = context.nanoClock();
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    PosixMetrics metrics = PosixMetrics.of(registry);
    BlockPaths paths =
        new BlockPaths(config.kind().name(), config.backends(), config.folderDigits());
    prepareBackends(seam);
    io = openQueues(seam, queues);
    claims = new WriterClaim[config.backends().size()];
    for (int i = 0; i < claims.length; i++) {
      claims[i] = new WriterClaim(seam, paths, i);
    }
    FolderTree tree = new FolderTree(paths, config.folderDigits());
    SpaceLimit space = new SpaceLimit(config, tree, clock, metrics.refusedBlocks());
    index = new BlockIndex(config.indexMaxBlocks());
    int kept = OpenFileLimit.now() / PARTS_OF_DESCRIPTORS;
    opened = new OpenBlocks(seam, paths, clock, chores, Math.min(OpenBlocks.MAX_KEPT, kept));
    BlockFiles files = new BlockFiles(seam, paths, config, claims, space, index, opened);
    ThreadLocal<IoScratch> scratches =
        ThreadLocal.withInitial(() -> new IoScratch(files.format, io.newQueue()));
    health = new BackendHealth(config, seam, paths, context.metrics(), clock, this::backendIsDown);
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
        new BackendErrands(
            config.kind(), "scan", "the scan for blocks", backends, health, fill::run);
    workers = workers();
    unfinished =
        new UnfinishedWork(
            board, partials, partialWriter, opened, health, failures, clock, config.timeoutMs());
    watch = new Watch(config.kind(), unfinished::endDue);
    deadWriters = new DeadWriters(seam, paths, claims, metrics);
    sweeps =
        new BackendErrands(
            config.kind(),
            "sweep",
            "the sweep for dead writers",
            backends,
            health,
            deadWriters::sweep);
    boolean keepsSpace = space.isLimited() && !config.isScheduler();
    LastUses recorded =
        config.notesUses() ? new LastUses(keepsSpace ? 0 : LEAST_BETWEEN_NOTES_NANOS) : null;
    uses = new BlockUses(recorded, keepsSpace, clock);
    keeper = recorded == null || !keepsSpace ? null : keeper(files, space, recorded, context);
    useKeeper = recorded == null || keepsSpace ? null : useKeeper(files, recorded, clock);
    intake =
        new TaskIntake(
            config,
            clock,
            metrics,
            workers,
            board,
            health,
            uses,
            watch,
            opened,
            new GuardedMover(writer, health),
            new GuardedMover(reader, health));
    registerGauges(registry, partials);
    health.whenUp(this::backendIsUp);
  }

  private void prepareBackends(FileSeam seam) {
    for (String backend : config.backends()) {
      Backends.prepare(config.kind(), seam, backend);
      if (config.ioDirect() && !config.isScheduler()) {
        DirectProbe.run(config.kind(), seam, backend);
      }
    }
  }

  private IoQueues openQueues(FileSeam seam, Supplier<@Nullable IoQueues> queues) {
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

  private SpaceKeeper keeper(
      BlockFiles files, SpaceLimit space, LastUses recorded, StoreContext context) {
    StoreMetrics registry = new KindMetrics(config.kind(), context.metrics());
    int backends = config.backends().size();
    FolderWalk walk =
        new FolderWalk(config.kind(), Math.max(1, config.gc().concurrency() / backends));
    BackendLanes lanes = lanes(context.nanoClock());
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
    return new SpaceKeeper(
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

  private UseKeeper useKeeper(BlockFiles files, LastUses recorded, LongSupplier clock) {
    BackendLanes lanes = lanes(clock);
    return new UseKeeper(
        config.kind(),
        teller(files, recorded, lanes),
        lanes,
        TimeUnit.SECONDS.toNanos(config.gc().checkIntervalSec()));
  }

  private UseTeller teller(BlockFiles files, LastUses recorded, Lanes lanes) {
    return new UseTeller(files, recorded, lanes, uses::wallNanos, timeoutNanos());
  }

  private BackendLanes lanes(LongSupplier clock) {
    long patience = Math.min(health.patienceNanos(), timeoutNanos());
    return new BackendLanes(config.kind(), config.backends().size(), health, clock, patience);
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
    SpaceKeeper known = keeper;
    if (known != null) {
      known.wake();
    }
  }

  /** How long a task may take, and a close. */
  long timeoutNanos() {
    return TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
  }
}
