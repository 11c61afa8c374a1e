package ucm.store.file.health;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileException;
import ucm.platform.thread.OwnThreads;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;

/**
 * The directories of {@code storage_backends}, each a volume that may fail or hang by itself: which may be used,
 * by a {@link Breaker} each, and the threads of background work there. A breaker is fed by what the store reports
 * of its own work, by operations that take longer than the timeout (while they do), and by probes at intervals.
 *
 * <p>While one is down, its blocks are absent to look-ups, and loads and dumps of them are refused; the
 * others go on. No block moves to another directory meanwhile: where a block is follows from its id,
 * for every process that uses the directories.
 *
 * <p>Background work has a thread for each piece of it, named by role and directory; there are few: in each
 * directory one probe, scan, sweep and round of the collector at a time. A caller that has work done on several
 * directories waits for each until it is done, its breaker opens, or the file system has not answered for some
 * time; then the thread is left to end by itself, and its directory left out for as long as it is held. What no
 * caller waits for, as closing files that are no longer read, one more thread does. Thread-safe.
 */
public final class Volumes implements FolderExecutor, AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Volumes.class);
  private static final int MOST_LEFT = 1 << 16;
  private static final long LONGEST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long KEPT_IDLE_SECONDS = 10;
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  /** One directory. */
  private final class Volume extends Breaker {

    final int number;
    final Runnable probe;
    // When the background work in it last got an answer.
    volatile long steppedNanos;
    // The last work that a caller of forEach waited for.
    volatile @Nullable Future<Boolean> last;

    Volume(int number, Runnable probe, Counters counters) {
      super(
          kind.name(),
          paths.directories().get(number),
          Volumes.this.rules,
          Volumes.this.clock,
          counters);
      this.number = number;
      this.probe = probe;
    }

    @Override
    protected void tryOut() {
      probe.run();
    }

    @Override
    protected void opened() {
      onDown.accept(number);
    }

    @Override
    protected void closed() {
      jobs.values().forEach(job -> job.recovered(number));
      onUp.accept(number);
    }
  }

  /**
   * What one thread is doing in a directory right now, so that another thread sees when it takes too
   * long. Used over and over by its thread; beginning and ending allocate nothing. Thread-safe.
   */
  private static final class Operation {

    /** In place of a directory. */
    static final int NONE = -1;

    // Guarded by this.
    private int directory = NONE;
    private boolean isTransfer;
    private boolean isLate;
    private long began;

    /** Begins; what was begun before has ended. */
    synchronized void begin(int inDirectory, boolean movesShards, LongSupplier clock) {
      directory = inDirectory;
      isTransfer = movesShards;
      isLate = false;
      began = clock.getAsLong();
    }

    /** Ends; false when it was found late, or nothing was begun. */
    synchronized boolean end() {
      boolean isInTime = directory != NONE && !isLate;
      directory = NONE;
      return isInTime;
    }

    /** The directory in which it moves shards, late or not; {@link #NONE} when it does not. */
    synchronized int transfersIn() {
      return isTransfer ? directory : NONE;
    }

    /** Finds out whether it takes too long; says so once. Returns the directory, or {@link #NONE}. */
    synchronized int lateIn(LongSupplier clock, long timeoutNanos) {
      if (directory == NONE || isLate || clock.getAsLong() - began < timeoutNanos) {
        return NONE;
      }
      isLate = true;
      return directory;
    }
  }

  final StoreKind kind;
  private final BlockPaths paths;
  private final FileStoreConfig.Health rules;
  private final long patienceNanos;
  private final LongSupplier clock;
  private final IntConsumer onDown;
  private final IntConsumer onUp;
  private final List<Volume> volumes = new ArrayList<>();
  private final Map<String, DirectoryJob> jobs = new ConcurrentHashMap<>();
  // Weak, because an operation goes with the thread that owns it.
  private final Set<Operation> operations =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private final ThreadLocal<Operation> ownOperation = ThreadLocal.withInitial(this::newOperation);
  private final OwnThreads own;
  private final ThreadPoolExecutor threads;
  private final OwnThreads cleaner;
  private final ThreadPoolExecutor cleanup;
  private final StoreMetrics.Counter lateOperations;
  private final StoreMetrics.Counter refusedLoadShards;
  private final StoreMetrics.Counter droppedDumpShards;
  private final StoreMetrics.Counter lookupMisses;

  /**
   * All directories are taken for good; nothing is probed yet.
   *
   * @param probes try out a directory each; throw when it does not work
   * @param timeoutNanos how long a task may take
   * @param onDown is called with a directory that is not to be used any more
   * @param onUp is called with one that may be used again, by the thread that found out
   */
  public Volumes(
      StoreKind kind,
      BlockPaths paths,
      List<? extends Runnable> probes,
      FileStoreConfig.Health rules,
      long timeoutNanos,
      StoreMetrics metrics,
      LongSupplier clock,
      IntConsumer onDown,
      IntConsumer onUp) {
    this.kind = kind;
    this.paths = paths;
    this.rules = rules;
    this.clock = clock;
    this.onDown = onDown;
    this.onUp = onUp;
    patienceNanos = rules.enabled() ? Math.min(rules.timeoutNanos(), timeoutNanos) : timeoutNanos;
    own = kind.threads("background");
    threads =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            KEPT_IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            own,
            new ThreadPoolExecutor.DiscardPolicy());
    cleaner = kind.threads("cleanup");
    cleanup =
        new ThreadPoolExecutor(
            1,
            1,
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            cleaner,
            (action, _) -> action.run());
    refusedLoadShards =
        metrics.counter("health_refused_load_shards", "Shards not loaded from a failing directory");
    droppedDumpShards =
        metrics.counter("health_dropped_dump_shards", "Shards not written to a failing directory");
    lookupMisses =
        metrics.counter("health_lookup_misses", "Blocks called absent, their directory is failing");
    StoreMetrics shown = rules.enabled() ? metrics : StoreMetrics.NONE;
    lateOperations =
        shown.counter("health_late_operations", "Loads, dumps and look-ups that took too long");
    Breaker.Counters counters = Breaker.Counters.of(shown, "health_");
    for (int i = 0; i < probes.size(); i++) {
      Volume volume = new Volume(i, probes.get(i), counters);
      volumes.add(volume);
      if (probes.size() > 1) {
        shown.gauge(
            "health_state_" + i,
            "Breaker of " + paths.directories().get(i) + ": 0 closed, 1 half-open, 2 open",
            volume::number);
      }
    }
    shown.gauge(
        "health_state",
        "Worst breaker: 0 closed, 1 half-open, 2 open",
        () -> volumes.stream().mapToInt(Breaker::number).max().orElse(0));
  }

  private Operation newOperation() {
    Operation operation = new Operation();
    operations.add(operation);
    return operation;
  }

  /** Begins to probe, after one interval, and to search for operations that take too long. */
  public void start(TimeoutScheduler timer) {
    timer.watch(
        rules,
        this::findLateOperations,
        () -> all().stream().forEach(i -> execute("probe", i, () -> probe(i))));
  }

  /**
   * Begins with something that is to be done once on each directory, see {@link DirectoryJob}.
   *
   * @param role names the threads: {@code ucm-<store>-<role>-<directory>}
   * @param what names it in messages
   * @param job does it on one directory, and ends early when that is down; returns whether nothing of
   *     it is left to do
   */
  public void begin(String role, String what, IntPredicate job) {
    DirectoryJob made = new DirectoryJob(role, what, this, job);
    jobs.put(role, made);
    made.start();
  }

  /** Begins nowhere again with what {@link #begin} began; what is under way goes on. */
  public void stopJobs() {
    jobs.values().forEach(DirectoryJob::stop);
  }

  /** Waits until what {@link #begin} began under a role is under way nowhere, for as long as that takes. */
  public void awaitJob(String role) throws InterruptedException {
    DirectoryJob job = jobs.get(role);
    if (job != null) {
      job.await();
    }
  }

  /** Probes a directory on the calling thread; false when a probe is under way, and no other was made. */
  boolean probe(int directory) {
    return volumes.get(directory).probe();
  }

  Breaker.State state(int directory) {
    return volumes.get(directory).state();
  }

  /** Finds operations and probes that take too long, each once. */
  void findLateOperations() {
    volumes.forEach(Breaker::findLateProbe);
    for (Operation operation : operations()) {
      int directory = operation.lateIn(clock, rules.timeoutNanos());
      if (directory != Operation.NONE) {
        lateOperations.increment();
        Volume late = volumes.get(directory);
        late.failed(late.late("an operation did not end"));
      }
    }
  }

  private List<Operation> operations() {
    synchronized (operations) {
      return List.copyOf(operations);
    }
  }

  /** Which directory a block is in. */
  public int directoryOf(long idHigh, long idLow) {
    return paths.directoryOf(idHigh, idLow);
  }

  /** Why a directory must not be used now, or null when it may be. Hot path. */
  public @Nullable StoreException refusal(int directory) {
    return volumes.get(directory).refusal();
  }

  /** Whether a block's directory must not be used now. */
  public boolean isDown(long idHigh, long idLow) {
    return refusal(directoryOf(idHigh, idLow)) != null;
  }

  /** Whether any directory must not be used now. */
  public boolean isAnyDown() {
    // Hot path: asked by each look-up.
    for (int i = 0; i < volumes.size(); i++) {
      if (refusal(i) != null) {
        return true;
      }
    }
    return false;
  }

  /**
   * A worker begins with shards of a directory, or goes on with them after a {@link #pause}. To be called
   * before it asks whether the directory is down: one that goes down counts the workers there.
   */
  public void enter(int directory) {
    begin(directory, true);
  }

  private void begin(int directory, boolean movesShards) {
    if (rules.enabled()) {
      ownOperation.get().begin(directory, movesShards, clock);
    }
  }

  /**
   * The calling worker waits for something else than the file system, which is no fault of that; or the calling
   * thread is done with its look-ups.
   */
  public void pause() {
    var _ = ownOperation.get().end();
  }

  /**
   * A worker is done.
   *
   * @param tried whether the file system was used
   * @param fault what it failed with, or null
   */
  public void leave(int directory, boolean tried, @Nullable RuntimeException fault) {
    // What took too long has been counted: its result is no news.
    if (!ownOperation.get().end() || !tried) {
      return;
    }
    if (fault == null) {
      volumes.get(directory).succeeded();
    } else {
      failed(directory, fault);
    }
  }

  /**
   * The calling thread begins to look up a block, and is done with the one before.
   *
   * @return false when its directory is down, and the block counts as absent
   */
  public boolean beginLookup(int directory) {
    if (refusal(directory) != null) {
      lookupMisses.increment();
      return false;
    }
    begin(directory, false);
    return true;
  }

  /** Whether a block must be called absent, as its directory is down. */
  public boolean hides(long idHigh, long idLow) {
    boolean hidden = isDown(idHigh, idLow);
    if (hidden) {
      lookupMisses.increment();
    }
    return hidden;
  }

  /**
   * The file system failed. A look-up that went well is not reported: the kernel answers from memory about
   * files that cannot be read any more.
   */
  public void failed(int directory, RuntimeException fault) {
    if (VolumeFaults.isFault(fault)) {
      volumes.get(directory).failed(fault);
    }
  }

  /** Work in the background failed, or has waited for too long. */
  public void failedInBackground(int directory, RuntimeException fault) {
    if (!(fault instanceof FileException) || VolumeFaults.isFault(fault)) {
      volumes.get(directory).failed(fault);
    }
  }

  /** Counts shards that were refused. */
  public void refused(boolean isDump, int shards) {
    (isDump ? droppedDumpShards : refusedLoadShards).add(shards);
  }

  /** Workers that directories hold which are down, also those that are late. */
  public int heldWorkers() {
    return (int)
        operations().stream()
            .mapToInt(Operation::transfersIn)
            .filter(directory -> directory != Operation.NONE && refusal(directory) != null)
            .count();
  }

  /**
   * Begins with some work at once, on a thread of its own; does nothing once this is closed.
   *
   * @param role names the thread meanwhile: {@code ucm-<store>-<role>-<number>}
   */
  public void execute(String role, int number, Runnable work) {
    threads.execute(
        () -> {
          Thread.currentThread().setName(kind.thread(role, number));
          work.run();
        });
  }

  @Override
  public BitSet all() {
    BitSet all = new BitSet();
    all.set(0, volumes.size());
    return all;
  }

  @Override
  public void step(int directory) {
    volumes.get(directory).steppedNanos = clock.getAsLong();
  }

  @Override
  public BitSet forEach(BitSet which, IntConsumer action) {
    Map<Integer, Future<Boolean>> begun = new TreeMap<>();
    for (int i = which.nextSetBit(0); i >= 0; i = which.nextSetBit(i + 1)) {
      Future<Boolean> before = volumes.get(i).last;
      if ((before == null || before.isDone()) && refusal(i) == null && !threads.isShutdown()) {
        begun.put(i, beginWork(i, action));
      }
    }
    Map<Integer, Future<Boolean>> awaited = new TreeMap<>(begun);
    try {
      while (!awaited.isEmpty()) {
        await(awaited.values().iterator().next());
        awaited
            .entrySet()
            .removeIf(entry -> entry.getValue().isDone() || isGivenUp(entry.getKey()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    BitSet done = new BitSet();
    begun.forEach(
        (directory, task) ->
            done.set(directory, task.state() == Future.State.SUCCESS && task.resultNow()));
    return done;
  }

  private Future<Boolean> beginWork(int directory, IntConsumer action) {
    step(directory);
    FutureTask<Boolean> task = new FutureTask<>(() -> isDone(directory, action));
    volumes.get(directory).last = task;
    execute("directory", directory, task);
    return task;
  }

  private boolean isDone(int directory, IntConsumer action) {
    try {
      action.accept(directory);
      return true;
    } catch (RuntimeException e) {
      LOG.warn("{} cannot manage the space of storage_backends: {}", kind.name(), e.getMessage());
      failedInBackground(directory, e);
    } catch (Error e) {
      LOG.error("{}: the work on a directory of storage_backends broke", kind.name(), e);
      failedInBackground(directory, new StoreException("the work on the directory broke: " + e, e));
    }
    return false;
  }

  private void await(Future<Boolean> task) throws InterruptedException {
    try {
      task.get(Math.min(LONGEST_WAIT_NANOS, patienceNanos), TimeUnit.NANOSECONDS);
    } catch (TimeoutException | ExecutionException _) {
      // The caller asks whether it is done.
    }
  }

  private boolean isGivenUp(int directory) {
    if (refusal(directory) != null) {
      return true;
    }
    if (clock.getAsLong() - volumes.get(directory).steppedNanos < patienceNanos) {
      return false;
    }
    failedInBackground(
        directory,
        new StoreException(
            "the file system did not answer the collector for "
                + Breaker.seconds(patienceNanos)
                + " s"));
    return true;
  }

  /**
   * Has something done soon that may wait for a file system, by a thread that sees to one thing after the
   * other; at once when {@link #awaitCleanup} was called. Bounded: a thread that finds {@link #isCleanupFull}
   * comes back later.
   *
   * @param action must not throw
   */
  public void later(Runnable action) {
    cleanup.execute(action);
  }

  /** Whether so much is left to do {@link #later} that no more should come for now. */
  public boolean isCleanupFull() {
    return cleanup.getQueue().size() >= MOST_LEFT;
  }

  /** Waits until everything is done that was to be done {@link #later}, as long as a file system takes for it. */
  public void awaitCleanup() {
    cleanup.shutdown();
    cleaner.join(Duration.ofDays(365));
  }

  /** Begins nothing more, and ends the threads; one that the file system holds is left to end by itself. */
  @Override
  public void close() {
    threads.shutdown();
    if (!own.join(LONGEST_CLOSE)) {
      LOG.warn("{}: a probe or the collector still waits for the file system", kind.name());
    }
  }
}
