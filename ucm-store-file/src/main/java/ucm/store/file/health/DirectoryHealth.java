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
  private final @Nullable HealthMonitor monitor;
  private final long patienceNanos;
  private final StoreMetrics.Counter refusedLoadShards;
  private final StoreMetrics.Counter droppedDumpShards;
  private final StoreMetrics.Counter lookupMisses;
  private final ThreadLocal<VolumeOperation> transfers;
  private final ThreadLocal<VolumeOperation> asking;

  /**
   * Starts no thread yet.
   *
   * @param onDown is told of a backend that is not to be used any more
   */
  public DirectoryHealth(
      FileStoreConfig config,
      FileOperations seam,
      BlockPaths paths,
      StoreMetrics metrics,
      LongSupplier clock,
      IntConsumer onDown) {
    this.paths = paths;
    HealthMonitor watching =
        config.health().enabled()
            ? new HealthMonitor(
                paths.store(),
                media(config, seam, paths),
                rules(config.health()),
                metrics,
                clock,
                onDown,
                config.kind().faults())
            : null;
    monitor = watching;
    patienceNanos =
        config.health().enabled()
            ? TimeUnit.SECONDS.toNanos(config.health().checkTimeoutS())
            : TimeUnit.MILLISECONDS.toNanos(config.timeoutMs());
    StoreMetrics own = new KindMetrics(config.kind(), metrics);
    refusedLoadShards =
        own.counter("health_refused_load_shards", "Shards not loaded from a sick backend");
    droppedDumpShards =
        own.counter("health_dropped_dump_shards", "Shards not written to a sick backend");
    lookupMisses =
        own.counter("health_lookup_misses", "Blocks called absent, their backend is sick");
    transfers = operations(watching, VolumeOperation.Kind.TRANSFER);
    asking = operations(watching, VolumeOperation.Kind.LOOKUP);
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

  private static List<HealthMonitor.Medium> media(
      FileStoreConfig config, FileOperations seam, BlockPaths paths) {
    List<HealthMonitor.Medium> media = new ArrayList<>();
    for (int i = 0; i < paths.backends().size(); i++) {
      String directory = paths.backends().get(i);
      Runnable probe =
          config.isScheduler() ? looking(seam, directory) : writing(config, seam, directory);
      media.add(new HealthMonitor.Medium(directory, probe));
    }
    return media;
  }

  /** A store that only looks up writes nothing, and is content with a directory that answers. */
  private static Runnable looking(FileOperations seam, String directory) {
    NativePath path = NativePath.of(directory + "/.");
    return () -> {
      if (seam.size(path) == FileOperations.ABSENT) {
        throw new StoreException("the directory " + directory + " is gone");
      }
    };
  }

  /**
   * The probe's file is in the folder of the writers' claims: one left behind by a process that died
   * is removed from there by the next start, like the claim of a dead writer.
   */
  private static Runnable writing(FileStoreConfig config, FileOperations seam, String directory) {
    String name =
        PROBE
            + ProcessHandle.current().pid()
            + "-"
            + Long.toHexString(ThreadLocalRandom.current().nextLong());
    return new FileProbe(seam, config.kind().name(), directory + "/" + BlockPaths.WRITERS, name);
  }

  /** Names who is to be told of a backend that may be used again. */
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

  /** Which backend a block is in. */
  public int backendOf(long idHigh, long idLow) {
    return paths.backendOf(idHigh, idLow);
  }

  /** Why a backend must not be used now, or null when it may be. */
  @Nullable
  public StoreException refusal(int backend) {
    return monitor == null ? null : monitor.refusal(backend);
  }

  /** Whether a block's backend must not be used now. */
  public boolean isDown(long idHigh, long idLow) {
    return monitor != null && refusal(backendOf(idHigh, idLow)) != null;
  }

  /** Whether any backend must not be used now. */
  public boolean isAnyDown() {
    for (int i = 0; i < paths.backends().size(); i++) {
      if (refusal(i) != null) {
        return true;
      }
    }
    return false;
  }

  /** A worker begins with shards of a backend. */
  public void enter(int backend) {
    // Before it is asked whether the backend is down: one that goes down counts who is there.
    if (monitor != null) {
      monitor.begin(transfers.get(), backend);
    }
  }

  /** The calling worker waits for something else than the file system, which is no fault of that. */
  public void pause() {
    if (monitor != null) {
      monitor.end(transfers.get());
    }
  }

  /** The calling worker has waited long enough, and goes on with shards of a backend. */
  public void resume(int backend) {
    if (monitor != null) {
      monitor.begin(transfers.get(), backend);
    }
  }

  /**
   * A worker is done.
   *
   * @param tried whether the file system was used
   * @param fault what it failed with, or null
   */
  public void leave(int backend, boolean tried, @Nullable RuntimeException fault) {
    if (monitor == null || !monitor.end(transfers.get()) || !tried) {
      return;
    }
    if (fault == null) {
      monitor.succeeded(backend);
    } else {
      failed(backend, fault);
    }
  }

  /**
   * The calling thread begins to look up a block, and is done with the one before.
   *
   * @return false when its backend is down, and the block counts as absent
   */
  public boolean beginLookup(long idHigh, long idLow) {
    if (monitor == null) {
      return true;
    }
    int backend = backendOf(idHigh, idLow);
    if (monitor.refusal(backend) != null) {
      lookupMisses.increment();
      return false;
    }
    monitor.begin(asking.get(), backend);
    return true;
  }

  /** Whether a block that is known must be called absent, as its backend is down. */
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
   * about files that nobody can read any more.
   */
  public void lookupFailed(long idHigh, long idLow, FileException fault) {
    failed(backendOf(idHigh, idLow), fault);
  }

  /** Work in the background failed, or has waited for too long. */
  public void failedInBackground(int backend, RuntimeException fault) {
    if (monitor != null && (!(fault instanceof FileException) || VolumeFaults.isFault(fault))) {
      monitor.failed(backend, fault);
    }
  }

  private void failed(int backend, RuntimeException fault) {
    if (monitor != null && VolumeFaults.isFault(fault)) {
      monitor.failed(backend, fault);
    }
  }

  /** Counts shards that were refused. */
  public void refused(boolean isDump, int shards) {
    (isDump ? droppedDumpShards : refusedLoadShards).add(shards);
  }

  /** Workers that a backend holds which is down. */
  public int heldWorkers() {
    int held = 0;
    for (int i = 0; monitor != null && i < paths.backends().size(); i++) {
      held += refusal(i) == null ? 0 : monitor.transfers(i);
    }
    return held;
  }

  /** Looks for what takes too long, now and on this thread; for tests. */
  void lookForLateOperations() {
    if (monitor != null) {
      monitor.lookForLateOperations();
    }
  }

  /** Probes now and on this thread; for tests. False when a probe was under way. */
  public boolean probe(int backend) {
    return monitor != null && monitor.probe(backend);
  }

  /** Ends the threads; one that the file system holds is left to end by itself. */
  public void close() {
    if (monitor != null && !monitor.close(LONGEST_CLOSE)) {
      LOG.warn("{}: a probe still waits for the file system", paths.store());
    }
  }
}
