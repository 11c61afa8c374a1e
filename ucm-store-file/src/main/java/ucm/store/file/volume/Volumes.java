package ucm.store.file.volume;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileOperations;
import ucm.platform.thread.OwnThreads;
import ucm.platform.thread.ThreadEnd;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;

/**
 * The directories of {@code storage_backends}, each a {@link Volume}, what is under way in them, and the threads of
 * background work there.
 *
 * <p>While one is down, its blocks are absent to look-ups, and loads and dumps of them are refused; the
 * others go on. No block moves to another directory meanwhile: where a block is follows from its id,
 * for every process that uses the directories.
 *
 * <p>Background work has a thread for each piece of it, named by role and directory; there are few: in each
 * directory one probe, scan, sweep and round of the collector at a time. What no caller waits for, as closing files
 * that are no longer read, one more thread does. Thread-safe.
 */
public final class Volumes implements AutoCloseable {

  private static final Logger LOG = LoggerFactory.getLogger(Volumes.class);
  private static final int MOST_LEFT = 1 << 16;
  private static final long KEPT_IDLE_SECONDS = 10;
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  /**
   * What one thread is doing in a directory right now, so that another thread sees when it takes too
   * long. Used over and over by its thread; beginning and ending allocate nothing. Thread-safe.
   */
  private static final class Operation {

    // Guarded by this; null when nothing is done.
    private @Nullable Volume volume;
    private boolean isTransfer;
    private boolean isLate;
    private long began;

    /** Begins; what was begun before has ended. */
    synchronized void begin(Volume in, boolean movesShards) {
      volume = in;
      isTransfer = movesShards;
      isLate = false;
      began = in.clock.getAsLong();
    }

    /** Ends; false when it was found late, or nothing was begun. */
    synchronized boolean end() {
      boolean isInTime = volume != null && !isLate;
      volume = null;
      return isInTime;
    }

    /** Whether it moves shards, late or not, in a directory that is down. */
    synchronized boolean isHeld() {
      return isTransfer && volume != null && volume.isDown();
    }

    /** Finds out whether it takes too long; says so once. Returns where, or null. */
    synchronized @Nullable Volume lateIn() {
      Volume in = volume;
      if (in == null || isLate || in.clock.getAsLong() - began < in.rules.timeoutNanos()) {
        return null;
      }
      isLate = true;
      return in;
    }
  }

  /** The store's clock, which counts nanoseconds. */
  public final LongSupplier clock;

  final StoreKind kind;
  final FileStoreConfig.Health rules;
  final Consumer<Volume> onDown;
  final Consumer<Volume> onUp;
  final long patienceNanos;
  final ThreadPoolExecutor threads;
  final StoreMetrics.Counter lookupMisses;
  private volatile boolean isClosing;
  private final BlockPaths paths;
  private final List<Volume> volumes;
  // Weak, because an operation goes with the thread that owns it.
  private final Set<Operation> operations =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private final ThreadLocal<Operation> ownOperation = ThreadLocal.withInitial(this::newOperation);
  private final OwnThreads own;
  private final OwnThreads cleaner;
  private final ThreadPoolExecutor cleanup;
  private final StoreMetrics.Counter lateOperations;
  private final StoreMetrics.Counter refusedLoadShards;
  private final StoreMetrics.Counter droppedDumpShards;

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
      FileOperations files,
      BlockPaths paths,
      List<? extends Runnable> probes,
      FileStoreConfig.Health rules,
      long timeoutNanos,
      StoreMetrics metrics,
      LongSupplier clock,
      Consumer<Volume> onDown,
      Consumer<Volume> onUp) {
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
    List<Volume> made = new ArrayList<>();
    for (int i = 0; i < probes.size(); i++) {
      Volume volume = new Volume(this, files, paths, i, probes.get(i), counters);
      made.add(volume);
      if (probes.size() > 1) {
        shown.gauge(
            "health_state_" + i,
            "Breaker of " + volume.directory + ": 0 closed, 1 half-open, 2 open",
            volume::stateNumber);
      }
    }
    volumes = List.copyOf(made);
    shown.gauge(
        "health_state",
        "Worst breaker: 0 closed, 1 half-open, 2 open",
        () -> volumes.stream().mapToInt(Breaker::stateNumber).max().orElse(0));
  }

  private Operation newOperation() {
    Operation operation = new Operation();
    operations.add(operation);
    return operation;
  }

  /** All of them, in the order of {@code storage_backends}. */
  public List<Volume> all() {
    return volumes;
  }

  /** The one with a number. */
  public Volume get(int number) {
    return volumes.get(number);
  }

  /** The one that a block is in. */
  public Volume of(long idHigh, long idLow) {
    return volumes.get(paths.directoryOf(idHigh, idLow));
  }

  /** Whether any must not be used now. */
  public boolean isAnyDown() {
    // Hot path: asked by each look-up.
    for (int i = 0; i < volumes.size(); i++) {
      if (volumes.get(i).isDown()) {
        return true;
      }
    }
    return false;
  }

  /** Begins to probe, after one interval, and to search for operations that take too long. */
  public void start(TimeoutScheduler timer) {
    timer.watch(
        rules,
        this::findLateOperations,
        () -> volumes.forEach(volume -> volume.execute("probe", volume::probe)));
  }

  /** Finds operations and probes that take too long, each once. */
  void findLateOperations() {
    volumes.forEach(Breaker::findLateProbe);
    for (Operation operation : operations()) {
      Volume late = operation.lateIn();
      if (late != null) {
        lateOperations.increment();
        late.failed(late.late("an operation did not end"));
      }
    }
  }

  private List<Operation> operations() {
    synchronized (operations) {
      return List.copyOf(operations);
    }
  }

  /** The calling thread begins with something in a directory. */
  void beginOperation(Volume volume, boolean movesShards) {
    if (rules.enabled()) {
      ownOperation.get().begin(volume, movesShards);
    }
  }

  /** The calling thread is done with it; false when that was found late. */
  boolean endOperation() {
    return ownOperation.get().end();
  }

  /**
   * The calling worker waits for something else than the file system, which is no fault of that; or the calling
   * thread is done with its look-ups.
   */
  public void pause() {
    var _ = endOperation();
  }

  /** Counts shards that were refused. */
  public void refused(boolean isDump, int shards) {
    (isDump ? droppedDumpShards : refusedLoadShards).add(shards);
  }

  /** Workers that directories hold which are down, also those that are late. */
  public int heldWorkers() {
    return (int) operations().stream().filter(Operation::isHeld).count();
  }

  /**
   * Begins with something that is to be done once in each directory; where it fails, it is made up for when the
   * directory works again.
   *
   * @param role names the threads: {@code ucm-<store>-<role>-<directory>}
   * @param what names it in messages
   * @param job does it in one directory, and ends early when that is down; returns whether nothing of
   *     it is left to do
   */
  public void beginJob(String role, String what, Predicate<Volume> job) {
    volumes.forEach(volume -> volume.beginJob(role, what, job));
  }

  /** Begins nowhere again with what {@link #beginJob} began; what is under way is to end soon. */
  public void stopJobs() {
    isClosing = true;
  }

  /** Whether {@link #stopJobs} was called. */
  public boolean isClosing() {
    return isClosing;
  }

  /** Waits until what {@link #beginJob} began under a role is under way nowhere, for as long as that takes. */
  public void awaitJob(String role) throws InterruptedException {
    for (Volume volume : volumes) {
      volume.awaitJob(role);
    }
  }

  /**
   * Does something in some directories, and waits for each until it is done, its breaker opens, or the file system
   * has not answered for some time ({@link Volume#step}). Then the thread is left to end by itself, and the directory
   * left out for as long as it is held, as are those that are down.
   *
   * @param action is given one of them; several run at once
   * @return where it was done
   */
  public Set<Volume> forEach(Collection<Volume> some, Consumer<Volume> action) {
    Map<Volume, Future<Boolean>> begun = new LinkedHashMap<>();
    for (Volume volume : some) {
      Future<Boolean> work = volume.beginWork(action);
      if (work != null) {
        begun.put(volume, work);
      }
    }
    Set<Volume> done = new LinkedHashSet<>();
    begun.forEach(
        (volume, work) -> {
          if (volume.await(work)) {
            done.add(volume);
          }
        });
    return done;
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
    cleaner.join(ThreadEnd.FOREVER);
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
