package ucm.store.posix;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.FlushResult;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.store.common.FileSeam;

/**
 * An open store: starts its parts, hands calls to them, and closes them in an order in which none is
 * needed any more.
 *
 * <p>A task ends with its last shard. The shards that make a block whole end after its commit, so that
 * a dump that went well and brought a block whole has made it durable, as far as configured.
 */
final class PosixEngine {

  private static final Logger LOG = LoggerFactory.getLogger(PosixStore.class);

  final BlockLookup lookup;
  final BlockUses uses;

  private final PosixConfig config;
  private final PosixParts parts;
  private final Thread sweeper;
  private final Thread scanner;

  PosixEngine(PosixConfig config, FileSeam seam, StoreContext context) {
    this.config = config;
    parts = new PosixParts(config, seam, context);
    lookup = parts.lookup;
    uses = parts.uses;
    scanner = Thread.ofPlatform().daemon().name("ucm-posix-scan-0").unstarted(parts.scan);
    sweeper = Thread.ofPlatform().daemon().name("ucm-posix-sweep-0").unstarted(parts.deadWriters);
  }

  /** Starts what runs in the background. */
  void start() {
    if (parts.index.isOn()) {
      scanner.start();
    }
    if (!config.isScheduler()) {
      sweeper.start();
    }
    SpaceKeeper keeper = parts.keeper;
    if (keeper != null) {
      keeper.start();
    }
    parts.health.start();
  }

  /** Refuses a transfer that this store cannot move. */
  void check(Transfer transfer) {
    parts.intake.check(transfer);
  }

  /** Accepts a transfer. */
  Task submit(Transfer transfer, boolean isDump) {
    return parts.intake.submit(transfer, isDump);
  }

  /** See {@link ucm.api.Store#flush}. */
  FlushResult flush(Duration timeout) throws InterruptedException {
    return parts.unfinished.flush(timeout, parts.intake.lastTask());
  }

  /** Waits until what dead writers left behind is removed. */
  void awaitSweep() throws InterruptedException {
    sweeper.join();
  }

  /** What looks after the space, when there is a capacity; for tests. */
  @Nullable SpaceKeeper keeper() {
    return parts.keeper;
  }

  /** Waits until the files that were there at the start are in the index. */
  void awaitScan() throws InterruptedException {
    scanner.join();
  }

  /** The health of the backends, for tests. */
  BackendHealth health() {
    return parts.health;
  }

  /** Ends everything, within the deadline of a task. */
  void close() {
    parts.deadWriters.stop();
    parts.scan.stop();
    lookup.close();
    boolean drained = parts.workers.close(Duration.ofNanos(parts.timeoutNanos()));
    parts.watch.close();
    int unfinished = parts.unfinished.endAll();
    SpaceKeeper keeper = parts.keeper;
    if (keeper != null) {
      keeper.close();
    }
    FlushResult dropped = parts.failures.take(0);
    if (dropped.failedCount() > 0) {
      LOG.warn(
          "Posix closes with {} blocks not stored, {} of them unfinished; first cause: {}",
          dropped.failedCount(),
          unfinished,
          dropped.cause() == null ? "none" : dropped.cause().getMessage());
    }
    join(sweeper, "the sweep for dead writers");
    join(scanner, "the scan for blocks");
    parts.health.close();
    if (!drained) {
      LOG.warn(
          "Posix closes while the file system still holds {} shards; their temporary files are"
              + " removed by the next start",
          parts.intake.openShards());
      return;
    }
    parts.io.close();
    releaseClaims();
  }

  private void releaseClaims() {
    for (int i = 0; i < parts.claims.length; i++) {
      StoreException refusal = parts.health.refusal(i);
      if (refusal == null) {
        parts.claims[i].release();
      } else {
        LOG.warn("Posix leaves its temporary files to the next start: {}", refusal.getMessage());
      }
    }
  }

  private void join(Thread thread, String what) {
    try {
      // Not every store starts every thread.
      if (thread.getState() != Thread.State.NEW
          && !thread.join(Duration.ofNanos(parts.timeoutNanos()))) {
        LOG.warn("Posix: {} still waits for the file system", what);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
