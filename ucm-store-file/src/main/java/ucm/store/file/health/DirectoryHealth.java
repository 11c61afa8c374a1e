package ucm.store.file.health;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.config.KindMetrics;
import ucm.store.file.format.BlockPaths;

/**
 * Which directories of {@code storage_backends} may be used, each by a breaker of its own.
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

  private static final Logger LOG = LoggerFactory.getLogger(DirectoryHealth.class);
  private static final Duration LONGEST_CLOSE = Duration.ofSeconds(1);

  private final BlockPaths paths;
  final @Nullable HealthMonitor monitor;
  private final long patienceNanos;
  private final StoreMetrics.Counter refusedLoadShards;
  private final StoreMetrics.Counter droppedDumpShards;
  private final StoreMetrics.Counter lookupMisses;
  private final ThreadLocal<VolumeOperation> transfers;
  private final ThreadLocal<VolumeOperation> asking;

  /**
   * Starts no thread yet.
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
    this.paths = paths;
    HealthMonitor started =
        config.health().enabled()
            ? new HealthMonitor(
                paths.store(),
                volumes(config, files, paths),
                rules(config.health()),
                metrics,
                clock,
                onDown,
                config.kind().faults())
            : null;
    monitor = started;
    patienceNanos =
        config.health().enabled()
            ? TimeUnit.SECONDS.toNanos(config.health().checkTimeoutS())
            : TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    StoreMetrics own = new KindMetrics(config.kind(), metrics);
    refusedLoadShards =
        own.counter("health_refused_load_shards", "Shards not loaded from a failing directory");
    droppedDumpShards =
        own.counter("health_dropped_dump_shards", "Shards not written to a failing directory");
    lookupMisses =
        own.counter("health_lookup_misses", "Blocks called absent, their directory is failing");
    transfers = operations(started, VolumeOperation.Kind.TRANSFER);
    asking = operations(started, VolumeOperation.Kind.LOOKUP);
  }

  private static ThreadLocal<VolumeOperation> operations(
      @Nullable HealthMonitor monitor, VolumeOperation.Kind kind) {
    return ThreadLocal.withInitial(() -> Objects.requireNonNull(monitor).newOperation(kind));
  }

  /** How long the file system may take for one answer. */
  public long patienceNanos() {
    return patienceNanos;
  }

  private static HealthMonitor.Rules rules(FileStoreConfig.Health health) {
    return new HealthMonitor.Rules(
        TimeUnit.SECONDS.toNanos(health.checkIntervalS()),
        TimeUnit.SECONDS.toNanos(health.checkTimeoutS()),
        health.windowSize(),
        health.failureThreshold());
  }

  private static List<HealthMonitor.Volume> volumes(
      FileStoreConfig config, FileOperations files, BlockPaths paths) {
    List<HealthMonitor.Volume> volumes = new ArrayList<>();
    for (int i = 0; i < paths.directories().size(); i++) {
      String directory = paths.directories().get(i);
      Runnable probe =
          config.isScheduler() ? reading(files, directory) : writing(config, files, directory);
      volumes.add(new HealthMonitor.Volume(directory, probe));
    }
    return volumes;
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

  /** Sets what is called with a directory that may be used again. */
  public void whenUp(IntConsumer onUp) {
    if (monitor != null) {
      monitor.whenUp(onUp);
    }
  }

  /** Starts to probe. */
  public void start() {
    if (monitor != null) {
      monitor.start();
    }
  }

  /** Which directory a block is in. */
  public int directoryOf(long idHigh, long idLow) {
    return paths.directoryOf(idHigh, idLow);
  }

  /** Why a directory must not be used now, or null when it may be. */
  @Nullable
  public StoreException refusal(int directory) {
    return monitor == null ? null : monitor.refusal(directory);
  }

  /** Whether a block's directory must not be used now. */
  public boolean isDown(long idHigh, long idLow) {
    return monitor != null && refusal(directoryOf(idHigh, idLow)) != null;
  }

  /** Whether any directory must not be used now. */
  public boolean isAnyDown() {
    for (int i = 0; i < paths.directories().size(); i++) {
      if (refusal(i) != null) {
        return true;
      }
    }
    return false;
  }

  /** A worker begins with shards of a directory. */
  public void enter(int directory) {
    // Before it is asked whether the directory is down: one that goes down counts the workers
    // there.
    if (monitor != null) {
      monitor.begin(transfers.get(), directory);
    }
  }

  /** The calling worker waits for something else than the file system, which is no fault of that. */
  public void pause() {
    if (monitor != null) {
      monitor.end(transfers.get());
    }
  }

  /** The calling worker has waited long enough, and goes on with shards of a directory. */
  public void resume(int directory) {
    if (monitor != null) {
      monitor.begin(transfers.get(), directory);
    }
  }

  /**
   * A worker is done.
   *
   * @param tried whether the file system was used
   * @param fault what it failed with, or null
   */
  public void leave(int directory, boolean tried, @Nullable RuntimeException fault) {
    if (monitor == null || !monitor.end(transfers.get()) || !tried) {
      return;
    }
    if (fault == null) {
      monitor.succeeded(directory);
    } else {
      failed(directory, fault);
    }
  }

  /**
   * The calling thread begins to look up a block, and is done with the one before.
   *
   * @return false when its directory is down, and the block counts as absent
   */
  public boolean beginLookup(long idHigh, long idLow) {
    if (monitor == null) {
      return true;
    }
    int directory = directoryOf(idHigh, idLow);
    if (monitor.refusal(directory) != null) {
      lookupMisses.increment();
      return false;
    }
    monitor.begin(asking.get(), directory);
    return true;
  }

  /** Whether a block that is known must be called absent, as its directory is down. */
  public boolean hides(long idHigh, long idLow) {
    boolean hidden = isDown(idHigh, idLow);
    if (hidden) {
      lookupMisses.increment();
    }
    return hidden;
  }

  /** The calling thread is done with its look-ups. */
  public void endLookup() {
    if (monitor != null) {
      monitor.end(asking.get());
    }
  }

  /**
   * The file system failed a look-up. One that went well is not counted: the kernel answers from memory
   * about files that cannot be read any more.
   */
  public void lookupFailed(long idHigh, long idLow, FileException fault) {
    failed(directoryOf(idHigh, idLow), fault);
  }

  /** Work in the background failed, or has waited for too long. */
  public void failedInBackground(int directory, RuntimeException fault) {
    if (monitor != null && (!(fault instanceof FileException) || VolumeFaults.isFault(fault))) {
      monitor.failed(directory, fault);
    }
  }

  private void failed(int directory, RuntimeException fault) {
    if (monitor != null && VolumeFaults.isFault(fault)) {
      monitor.failed(directory, fault);
    }
  }

  /** Counts shards that were refused. */
  public void refused(boolean isDump, int shards) {
    (isDump ? droppedDumpShards : refusedLoadShards).add(shards);
  }

  /** Workers that a directory holds which is down. */
  public int heldWorkers() {
    int held = 0;
    for (int i = 0; monitor != null && i < paths.directories().size(); i++) {
      held += refusal(i) == null ? 0 : monitor.transfers(i);
    }
    return held;
  }

  /** Ends the threads; one that the file system holds is left to end by itself. */
  public void close() {
    if (monitor != null && !monitor.close(LONGEST_CLOSE)) {
      LOG.warn("{}: a probe still waits for the file system", paths.store());
    }
  }
}
