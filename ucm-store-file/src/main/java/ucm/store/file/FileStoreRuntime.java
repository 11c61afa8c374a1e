package ucm.store.file;

import java.time.Duration;
import java.util.BitSet;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileOperations;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.eviction.AccessTimeManager;
import ucm.store.file.eviction.CapacityManager;
import ucm.store.file.index.BlockUses;
import ucm.store.file.lease.WriterLease;
import ucm.store.file.lookup.BlockLookup;

/**
 * An open store: starts its parts, hands calls to them, and closes them in an order in which none is
 * needed any more.
 *
 * <p>A task ends with its last shard. The shards that make a block whole end after its commit, so that
 * a dump that went well and brought a block whole has made it durable, as far as configured.
 */
final class FileStoreRuntime {

  private static final Logger LOG = LoggerFactory.getLogger(FileStoreRuntime.class);

  final BlockLookup lookup;
  final BlockUses uses;

  private final FileStoreConfig config;
  final FileStoreComponents parts;

  /**
   * An engine that is not started.
   *
   * @param queues see {@link FileStore#openQueues}
   */
  FileStoreRuntime(
      FileStoreConfig config,
      FileOperations files,
      StoreContext context,
      Supplier<@Nullable IoQueues> queues) {
    this.config = config;
    parts = new FileStoreComponents(config, files, context, queues);
    lookup = parts.lookup;
    uses = parts.uses;
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
    if (parts.index.isOn()) {
      parts.scanning.start();
    }
    if (!config.isScheduler()) {
      parts.sweeps.start();
    }
    CapacityManager capacity = parts.capacity;
    if (capacity != null) {
      capacity.start();
    }
    AccessTimeManager accessTimes = parts.accessTimes;
    if (accessTimes != null) {
      accessTimes.start();
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

  /** See {@link ucm.api.Store#remove}. */
  BitSet remove(BlockIds ids) {
    return parts.remover.remove(ids);
  }

  /** Has the next flush report a block. */
  void dumpFailed(long idHigh, long idLow, Throwable why) {
    parts.failures.record(idHigh, idLow, why);
  }

  /** The deadline of a task. */
  long timeoutNanos() {
    return parts.timeoutNanos();
  }

  /**
   * Ends everything: what is accepted within the deadline of a task, and what the file system holds
   * when it returns, however long that takes. See {@link BoundedClose}.
   */
  void close() {
    parts.deadWriters.stop();
    parts.sweeps.stop();
    parts.fill.stop();
    parts.scanning.stop();
    lookup.close();
    if (!parts.workers.close(Duration.ofNanos(parts.timeoutNanos()))) {
      parts.unfinished.endWaiting();
      LOG.warn(
          "{} closes while the file system still holds {} shards; they end when it lets go",
          config.kind().name(),
          parts.intake.openShards());
      parts.workers.close();
    }
    parts.timeouts.close();
    int unfinished = parts.unfinished.endAll();
    parts.cleanup.close();
    CapacityManager capacity = parts.capacity;
    if (capacity != null) {
      capacity.close();
    }
    AccessTimeManager accessTimes = parts.accessTimes;
    if (accessTimes != null) {
      accessTimes.close();
    }
    // A flush that is under way must report them as well.
    FlushResult dropped = parts.failures.peek(0);
    if (dropped.failedCount() > 0) {
      LOG.warn(
          "{} closes with {} blocks not stored, {} of them unfinished; first cause: {}",
          config.kind().name(),
          dropped.failedCount(),
          unfinished,
          dropped.cause() == null ? "none" : dropped.cause().getMessage());
    }
    parts.sweeps.join();
    parts.scanning.join();
    parts.health.close();
    parts.io.close();
    for (WriterLease lease : parts.leases) {
      lease.release();
    }
  }
}
