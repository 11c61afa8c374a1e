package ucm.store.file.health;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.KindMetrics;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;

/**
 * Which directories of {@code storage_backends} may be used, each by a {@link DirectoryBreaker} of its
 * own. A breaker is fed by what the store reports of its own work, by operations that take longer than the
 * timeout (while they do), and by probes at intervals.
 *
 * <p>While one is down, its blocks are absent to look-ups, and loads and dumps of them are refused; the
 * others go on. No block moves to another directory meanwhile: where a block is follows from its id,
 * for every process that uses the directories.
 *
 * <p>With {@code store_health.enabled: false} nothing is ever down. Thread-safe.
 */
public final class DirectoryHealth {

  /** How the names of the probes' files begin. */
  public static final String PROBE = "probe-";

  private static final int CHECKS_PER_TIMEOUT = 4;

  /**
   * What counts as failing.
   *
   * @param intervalNanos time between two probes
   * @param timeoutNanos how long a probe or an operation may take before it counts as failed
   * @param windowSize how many of the last results are counted
   * @param failureThreshold how many of them must have failed for the directory to be left alone
   */
  record Rules(long intervalNanos, long timeoutNanos, int windowSize, int failureThreshold) {}

  private final BlockPaths paths;
  private final Rules rules;
  private final LongSupplier clock;
  private volatile IntConsumer onUp = directory -> {};
  // None when nothing is ever down.
  private final List<DirectoryBreaker> breakers = new ArrayList<>();
  // Weak, because an operation goes with the thread that owns it.
  private final Set<Operation> operations =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private final ThreadLocal<Operation> transfers =
      ThreadLocal.withInitial(() -> newOperation(Operation.Kind.TRANSFER));
  private final ThreadLocal<Operation> lookups =
      ThreadLocal.withInitial(() -> newOperation(Operation.Kind.LOOKUP));
  private final StoreMetrics.Counter lateOperations;
  private final StoreMetrics.Counter refusedLoadShards;
  private final StoreMetrics.Counter droppedDumpShards;
  private final StoreMetrics.Counter lookupMisses;

  /**
   * All directories are taken for good; nothing is probed yet.
   *
   * @param onDown is called with a directory that is not to be used any more
   */
  public DirectoryHealth(
      FileStoreConfig config,
      FileOperations files,
      BlockPaths paths,
      StoreMetrics metrics,
      LongSupplier clock,
      IntConsumer onDown) {
    this(
        config.kind(),
        paths,
        config.health().enabled() ? probes(config, files, paths) : List.of(),
        new Rules(
            TimeUnit.SECONDS.toNanos(config.health().checkIntervalS()),
            config.health().enabled()
                ? TimeUnit.SECONDS.toNanos(config.health().checkTimeoutS())
                : TimeUnit.MILLISECONDS.toNanos(config.timeoutMs()),
            config.health().windowSize(),
            config.health().failureThreshold()),
        new KindMetrics(config.kind(), metrics),
        clock,
        onDown);
  }

  /** With a probe for each directory, or with none. */
  DirectoryHealth(
      StoreKind kind,
      BlockPaths paths,
      List<Runnable> probes,
      Rules rules,
      StoreMetrics metrics,
      LongSupplier clock,
      IntConsumer onDown) {
    this.paths = paths;
    this.rules = rules;
    this.clock = clock;
    refusedLoadShards =
        metrics.counter("health_refused_load_shards", "Shards not loaded from a failing directory");
    droppedDumpShards =
        metrics.counter("health_dropped_dump_shards", "Shards not written to a failing directory");
    lookupMisses =
        metrics.counter("health_lookup_misses", "Blocks called absent, their directory is failing");
    if (probes.isEmpty()) {
      lateOperations = StoreMetrics.NONE.counter("", "");
      return;
    }
    DirectoryBreaker.Reports reports =
        new DirectoryBreaker.Reports(
            metrics.counter("health_trips", "Times that a breaker has opened"),
            metrics.counter("health_probes", "Probes begun"),
            metrics.counter("health_probe_failures", "Probes failed or late"),
            onDown,
            directory -> onUp.accept(directory));
    lateOperations =
        metrics.counter("health_late_operations", "Loads, dumps and look-ups that took too long");
    for (int i = 0; i < probes.size(); i++) {
      String directory = paths.directories().get(i);
      DirectoryBreaker breaker =
          new DirectoryBreaker(kind.name(), i, directory, rules, probes.get(i), reports);
      breakers.add(breaker);
      operations.add(breaker.probing);
      if (probes.size() > 1) {
        metrics.gauge(
            "health_state_" + i,
            "Breaker of " + directory + ": 0 closed, 1 half-open, 2 open",
            () -> breaker.state().number);
      }
    }
    metrics.gauge(
        "health_state",
        "Worst breaker: 0 closed, 1 half-open, 2 open",
        () -> breakers.stream().mapToInt(breaker -> breaker.state().number).max().orElse(0));
  }

  private static List<Runnable> probes(
      FileStoreConfig config, FileOperations files, BlockPaths paths) {
    return paths.directories().stream()
        .map(
            directory ->
                config.isScheduler()
                    ? reading(files, directory)
                    : writing(config, files, directory))
        .toList();
  }

  /** A store that only looks up writes nothing, so its probe only reads. */
  private static Runnable reading(FileOperations files, String directory) {
    NativePath path = NativePath.of(directory + "/.");
    return () -> {
      if (files.size(path) == FileOperations.ABSENT) {
        throw new StoreException("the directory " + directory + " is gone");
      }
    };
  }

  /**
   * The probe's file is in the folder of the writers' leases: one left by a process that died
   * is removed from there by the next start, like the lease of a dead writer.
   */
  private static Runnable writing(FileStoreConfig config, FileOperations files, String directory) {
    String name =
        PROBE
            + ProcessHandle.current().pid()
            + "-"
            + Long.toHexString(ThreadLocalRandom.current().nextLong());
    return new FileProbe(files, config.kind().name(), directory + "/" + BlockPaths.WRITERS, name);
  }

  private Operation newOperation(Operation.Kind kind) {
    Operation operation = new Operation(kind);
    operations.add(operation);
    return operation;
  }

  /** How long the file system may take for one answer. */
  public long patienceNanos() {
    return rules.timeoutNanos;
  }

  /** Sets what is called with a directory that may be used again, by the thread that found out. */
  public void whenUp(IntConsumer action) {
    onUp = action;
  }

  /** Begins to probe, after one interval, and to search for operations that take too long. */
  public void start(TimeoutScheduler timer, DirectoryExecutors executors) {
    if (breakers.isEmpty()) {
      return;
    }
    timer.every(rules.timeoutNanos / CHECKS_PER_TIMEOUT, this::findLateOperations);
    timer.every(
        rules.intervalNanos,
        () -> {
          for (int i = 0; i < breakers.size(); i++) {
            int directory = i;
            executors.execute("probe", i, () -> probe(directory));
          }
        });
  }

  /** Probes a directory on the calling thread; false when a probe is under way, and no other was made. */
  boolean probe(int directory) {
    return breakers.get(directory).probe(clock.getAsLong());
  }

  DirectoryBreaker.State state(int directory) {
    return breakers.get(directory).state();
  }

  /** Finds operations that take too long, each once. */
  void findLateOperations() {
    for (Operation operation : operations()) {
      int directory = operation.lateIn(clock, rules.timeoutNanos);
      if (directory < 0) {
        continue;
      }
      boolean isProbe = operation.kind == Operation.Kind.PROBE;
      StoreException fault =
          new StoreException(
              "%s did not end within %s s"
                  .formatted(isProbe ? "a probe" : "an operation", seconds(rules.timeoutNanos)));
      if (isProbe) {
        breakers.get(directory).probeEnded(fault);
      } else {
        lateOperations.increment();
        breakers.get(directory).failed(fault);
      }
    }
  }

  private List<Operation> operations() {
    synchronized (operations) {
      return List.copyOf(operations);
    }
  }

  static double seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toMillis(nanos) / 1000.0;
  }

  /** Which directory a block is in. */
  public int directoryOf(long idHigh, long idLow) {
    return paths.directoryOf(idHigh, idLow);
  }

  /** Why a directory must not be used now, or null when it may be. Hot path. */
  public @Nullable StoreException refusal(int directory) {
    return breakers.isEmpty() ? null : breakers.get(directory).refusal();
  }

  /** Whether a block's directory must not be used now. */
  public boolean isDown(long idHigh, long idLow) {
    return !breakers.isEmpty() && refusal(directoryOf(idHigh, idLow)) != null;
  }

  /** Whether any directory must not be used now. */
  public boolean isAnyDown() {
    // Hot path: asked by each look-up.
    for (int i = 0; i < breakers.size(); i++) {
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
    if (!breakers.isEmpty()) {
      transfers.get().begin(directory, clock.getAsLong());
    }
  }

  /** The calling worker waits for something else than the file system, which is no fault of that. */
  public void pause() {
    if (!breakers.isEmpty()) {
      transfers.get().end();
    }
  }

  /**
   * A worker is done.
   *
   * @param tried whether the file system was used
   * @param fault what it failed with, or null
   */
  public void leave(int directory, boolean tried, @Nullable RuntimeException fault) {
    // What took too long has been counted: its result is no news.
    if (breakers.isEmpty() || !transfers.get().end() || !tried) {
      return;
    }
    if (fault == null) {
      breakers.get(directory).succeeded();
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
    if (!breakers.isEmpty()) {
      lookups.get().begin(directory, clock.getAsLong());
    }
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

  /** The calling thread is done with its look-ups. */
  public void endLookup() {
    if (!breakers.isEmpty()) {
      lookups.get().end();
    }
  }

  /**
   * The file system failed. A look-up that went well is not reported: the kernel answers from memory about
   * files that cannot be read any more.
   */
  public void failed(int directory, RuntimeException fault) {
    if (!breakers.isEmpty() && VolumeFaults.isFault(fault)) {
      breakers.get(directory).failed(fault);
    }
  }

  /** Work in the background failed, or has waited for too long. */
  public void failedInBackground(int directory, RuntimeException fault) {
    if (!breakers.isEmpty() && (!(fault instanceof FileException) || VolumeFaults.isFault(fault))) {
      breakers.get(directory).failed(fault);
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
            .filter(operation -> operation.kind == Operation.Kind.TRANSFER)
            .mapToInt(Operation::currentDirectory)
            .filter(directory -> directory >= 0 && refusal(directory) != null)
            .count();
  }
}
