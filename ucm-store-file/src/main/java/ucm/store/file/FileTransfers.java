package ucm.store.file;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.block.BlockReader;
import ucm.store.file.block.BlockWriter;
import ucm.store.file.block.FileTask;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.block.Quarantine;
import ucm.store.file.block.ShardIo;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.health.TimeoutScheduler;

/**
 * Hands tasks to the workers, and sees to what they leave open: files of blocks that are loaded in parts, and
 * blocks that lack shards. Thread-safe.
 */
final class FileTransfers {

  private static final Logger LOG = LoggerFactory.getLogger(FileTransfers.class);
  private static final int CHECKS_PER_TIMEOUT = 4;

  /** The thread that keeps time. */
  final TimeoutScheduler timer;

  private final FileStoreRuntime store;
  private final Supplier<List<TransferTask>> tasks;
  // What is moved for tasks of other memory.
  private final Set<FileTask> parts = ConcurrentHashMap.newKeySet();
  final BlockWriter writer;
  private final BlockReader reader;

  /** Uses those parts of a store that are made before this one. */
  FileTransfers(
      FileStoreRuntime store, Supplier<List<TransferTask>> tasks, BlockWriter.Failures failures) {
    this.store = store;
    this.tasks = tasks;
    this.timer = new TimeoutScheduler(store.config.kind());
    BlockFiles files = store.files;
    FileStoreMetrics metrics = store.metrics;
    ThreadLocal<ShardIo> ios =
        ThreadLocal.withInitial(() -> new ShardIo(files.format, store.io.newQueue()));
    writer = new BlockWriter(files, failures, metrics, ios, store.clock, store.volumes);
    Quarantine quarantine = new Quarantine(files.operations, files.paths, metrics);
    reader = new BlockReader(files, store.config.verify(), quarantine, metrics, ios);
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

  /** Ends what was not begun of blocks whose directory is down. */
  void refuse() {
    moving().forEach(FileTask::refuse);
  }

  /** Makes the task of a transfer. */
  FileTask newTask(long id, Transfer transfer, boolean isDump) {
    FileTask task =
        new FileTask(id, transfer, isDump, isDump ? writer : reader, store.volumes, store.clock);
    task.beforeTerminal(() -> ended(task, isDump ? store.metrics.dumps : store.metrics.loads));
    return task;
  }

  private void ended(FileTask task, FileStoreMetrics.Tasks ended) {
    long now = store.clock.getAsLong();
    ended.ended(task.transfer().byteSize(), task.waitNanos(now), task.nanos(now));
    if (LOG.isDebugEnabled()) {
      double millis = Math.round(task.nanos(now) / 1e3) / 1e3;
      LOG.debug("{} finished, cost {}ms.", task.name(store.config.kind().name()), millis);
    }
  }

  /** Moves what may be moved of a task. */
  void start(FileTask task) {
    start(task, store.workers::submit);
  }

  private void start(FileTask task, Consumer<FileTask> workers) {
    if (LOG.isDebugEnabled()) {
      LOG.debug("{} dispatching.", task.name(store.config.kind().name()));
    }
    if (!store.volumes.isAnyDown() || !task.refuseWhole()) {
      workers.accept(task);
      if (store.volumes.isAnyDown()) {
        // A directory that goes down from now on finds it among the open ones.
        task.refuse();
      }
    }
    // While the workers are at it; they need not wait for a note.
    store.uses.moved(task.transfer(), task.writes());
  }

  /** Moves host memory on behalf of a task of other memory. */
  FileTask move(TransferTask task, Transfer inHost) {
    FileTask part = newTask(task.id(), inHost, task.isDump());
    start(part, store.workers::submitPart);
    parts.add(part);
    part.whenTerminal(() -> parts.remove(part));
    return part;
  }

  /** Ends what was not begun of parts that have taken so long. */
  void expireParts(long nanos) {
    long now = store.clock.getAsLong();
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

  /** Begins to look after what is left open. */
  void begin() {
    long interval = Math.min(OpenBlocks.IDLE_NANOS, store.timeoutNanos()) / CHECKS_PER_TIMEOUT;
    timer.every(interval, this::tidy);
  }

  /**
   * Ends parts that are late, closes files of which no more is read, and gives up blocks whose shards do
   * not come.
   */
  private void tidy() {
    expireParts(store.timeoutNanos());
    long now = store.clock.getAsLong();
    store.files.opened.closeIdle(now);
    writer.giveUpDue(now, store.timeoutNanos());
  }

  /** Waits for the blocks that lack shards; see {@link FileStore#doFlush}. */
  void flush(long lastTask, long end, Set<BlockIds> pending) throws InterruptedException {
    tidy();
    writer.await(lastTask, end, pending);
  }

  /** Ends what is left, after the workers; returns how many blocks lacked shards. */
  int close() {
    timer.close();
    int unfinished = writer.unfinished();
    writer.giveUpAll();
    store.files.opened.closeAll();
    return unfinished;
  }
}
