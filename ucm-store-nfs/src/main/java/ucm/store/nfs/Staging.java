package ucm.store.nfs;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.platform.device.EngineDevice;
import ucm.platform.thread.ThreadEnd;

/**
 * Moves device memory to and from files through a bounded number of buffers.
 *
 * <p>A task waits in line until there are buffers for its next chunk of shards; a chunk has all the buffers
 * it will need, so chunks never wait for one another. The thread that gives buffers back starts the
 * next chunks. No thread is kept waiting: threads of the device copy, those of the file store read and write.
 */
final class Staging {

  private static final Logger LOG = LoggerFactory.getLogger(NfsStore.class);
  private static final Duration JOIN = Duration.ofSeconds(5);
  // As much as the file store moves at once.
  private static final long CHUNK_BYTES = 4L << 20;
  // So that some chunks are on their way to the device while others are with the files.
  private static final int CHUNKS_AT_ONCE = 4;

  /** Moves shards between host memory and files, as {@link ucm.api.Store} says. */
  interface FileMover {

    /** Starts to read. */
    Task load(Transfer transfer);

    /** Starts to write. */
    Task dump(Transfer transfer);

    /** Has the next flush report a block that will not be written. */
    void dumpFailed(long idHigh, long idLow, Throwable why);
  }

  private final NfsConfig config;
  private final FileMover files;
  private final LongSupplier clock;
  private final EngineDevice device;
  private final ScheduledThreadPoolExecutor timeouts =
      new ScheduledThreadPoolExecutor(
          1, Thread.ofPlatform().daemon().name("ucm-nfs-timeouts-", 0).factory());
  private final AtomicInteger pumps = new AtomicInteger();

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  // Guarded by lock.
  private @Nullable StagingBuffers buffers;
  private final ArrayDeque<StagedTransfer> waiting = new ArrayDeque<>();
  private final Set<StagedTransfer> open = new LinkedHashSet<>();
  // Dumps that the files do not have all of; what failed has been reported to them.
  private final Set<StagedTransfer> unsettled = new LinkedHashSet<>();
  private int openShards;
  private boolean closed;
  // Used by close.
  private boolean closeBegun;
  private boolean threadsEnded;
  private boolean released;

  /**
   * Opens the device and allocates the buffers, if there is a device.
   *
   * @throws StoreException when the configured device cannot be had, or there is not enough memory
   */
  Staging(NfsConfig config, FileMover files, StoreContext context) {
    this.config = config;
    this.files = files;
    this.clock = context.nanoClock();
    timeouts.setRemoveOnCancelPolicy(true);
    try {
      this.device = EngineDevice.open(config.engineDevice(), this::allocate);
    } catch (RuntimeException | Error e) {
      freeBuffers();
      throw e;
    }
    if (!device.isThere()) {
      freeBuffers();
    }
    StagingBuffers known = buffers;
    if (known != null) {
      context
          .metrics()
          .gauge("nfs_buffers_in_use", "Buffers between device and files in use", known::inUse);
    }
    LOG.info("{}: {}; device: {}", NfsStore.NAME, known == null ? "no buffers" : known, device);
  }

  private StagingBuffers allocate() {
    StagingBuffers allocated = new StagingBuffers(config.slots(), config.stride());
    buffers = allocated;
    return allocated;
  }

  private void freeBuffers() {
    if (buffers != null) {
      buffers.free();
      buffers = null;
    }
  }

  /** The device; its threads are there when it is. */
  EngineDevice device() {
    return device;
  }

  /** The buffers; there are some when there is a device. */
  StagingBuffers buffers() {
    return Objects.requireNonNull(buffers);
  }

  /** Where shards go to and come from. */
  FileMover files() {
    return files;
  }

  /** Checks that a transfer is one that can be moved, whatever memory it names. */
  void require(Transfer transfer) {
    if (!transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "a transfer of "
              + transfer.layout()
              + " does not fit Nfs, which is configured for "
              + config.layout());
    }
    device.require(transfer);
  }

  /** Accepts a transfer of device memory that was checked. */
  Task submit(long id, Transfer transfer, boolean isDump) {
    TransferTask task = new TransferTask(id, transfer);
    StagedTransfer staged =
        new StagedTransfer(task, isDump, clock.getAsLong() + config.timeoutNanos());
    if (transfer.shardCount() > 0) {
      Future<?> timeout = enter(staged);
      task.whenTerminal(() -> timeout.cancel(false));
      pump();
    }
    return task;
  }

  private Future<?> enter(StagedTransfer staged) {
    int shards = staged.transfer.shardCount();
    // Before others can see it, and so end it.
    staged.task.beforeTerminal(() -> finished(staged));
    lock.lock();
    try {
      if (closed) {
        throw new StoreClosedException(NfsStore.NAME);
      }
      if (open.size() >= config.waitingQueueDepth()) {
        throw new QueueFullException(
            "Nfs tasks", open.size(), CommonKeys.WAITING_QUEUE_DEPTH.name());
      }
      // One that is larger than the bound may be under way alone.
      if (openShards > 0 && (long) openShards + shards > config.runningQueueDepth()) {
        throw new QueueFullException(
            "Nfs shards", openShards, CommonKeys.RUNNING_QUEUE_DEPTH.name());
      }
      Future<?> timeout = checkIn(staged, config.timeoutNanos());
      openShards += shards;
      open.add(staged);
      waiting.add(staged);
      if (staged.isDump) {
        unsettled.add(staged);
      }
      return timeout;
    } finally {
      lock.unlock();
    }
  }

  private Future<?> checkIn(StagedTransfer staged, long nanos) {
    return timeouts.schedule(() -> endIfDue(staged), nanos, TimeUnit.NANOSECONDS);
  }

  private void endIfDue(StagedTransfer staged) {
    long left = staged.deadlineNanos - clock.getAsLong();
    if (left <= 0) {
      timeOut(staged);
    } else if (!staged.task.check()) {
      Future<?> _ = checkIn(staged, left);
    }
  }

  /** Starts what there are buffers for. Does not block; a call within a call leaves it to that one. */
  void pump() {
    if (pumps.getAndIncrement() != 0) {
      return;
    }
    int seen = 1;
    do {
      for (StagedChunk chunk = nextChunk(); chunk != null; chunk = nextChunk()) {
        chunk.start();
      }
      seen = pumps.addAndGet(-seen);
    } while (seen != 0);
  }

  private @Nullable StagedChunk nextChunk() {
    lock.lock();
    try {
      StagedTransfer staged = waiting.peek();
      if (staged == null) {
        return null;
      }
      int first = staged.taken;
      int count = staged.chunkEnd(mostAtOnce()) - first;
      int[] slots = buffers().take(count);
      if (slots.length == 0) {
        return null;
      }
      staged.taken += count;
      staged.openChunks++;
      if (staged.taken == staged.transfer.shardCount()) {
        waiting.remove();
      }
      return new StagedChunk(this, staged, first, slots);
    } finally {
      lock.unlock();
    }
  }

  /** The most shards of a chunk. */
  private int mostAtOnce() {
    long bytes = Math.max(CHUNK_BYTES, config.layout().blockSize());
    int share = Math.max(1, buffers().slots() / CHUNKS_AT_ONCE);
    return Math.clamp(bytes / config.layout().shardSize(), 1, share);
  }

  private void finished(StagedTransfer staged) {
    lock.lock();
    try {
      if (open.remove(staged)) {
        openShards -= staged.transfer.shardCount();
        changed.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** The files have a chunk of a dump, or it has {@link #failed}. */
  void settled(StagedTransfer staged) {
    lock.lock();
    try {
      staged.openChunks--;
      removeIfSettled(staged);
    } finally {
      lock.unlock();
    }
  }

  private void removeIfSettled(StagedTransfer staged) {
    if (staged.openChunks == 0 && staged.taken == staged.transfer.shardCount()) {
      unsettled.remove(staged);
      changed.signalAll();
    }
  }

  /** A shard of a dump will not come to the files. */
  void failed(Transfer transfer, int shard, Throwable cause) {
    files.dumpFailed(transfer.ids().high(shard), transfer.ids().low(shard), cause);
  }

  /** Ends what no thread has begun to copy. */
  private void timeOut(StagedTransfer staged) {
    StoreException cause = staged.timeout();
    for (int shard = 0; shard < staged.transfer.shardCount(); shard++) {
      if (staged.task.begin(shard)) {
        if (staged.isDump) {
          failed(staged.transfer, shard, cause);
        }
        staged.task.end(shard, ShardOutcome.EXPIRED, cause);
      }
    }
    lock.lock();
    try {
      staged.taken = staged.transfer.shardCount();
      waiting.remove(staged);
      removeIfSettled(staged);
    } finally {
      lock.unlock();
    }
    pump();
  }

  /**
   * Waits until the files have all dumps accepted so far, or these have failed.
   *
   * @return how many blocks are still on their way to the files
   */
  long flush(Duration timeout) throws InterruptedException {
    long left = timeout.toNanos();
    lock.lock();
    try {
      List<StagedTransfer> before = new ArrayList<>(unsettled);
      while (!before.isEmpty() && left > 0) {
        left = changed.awaitNanos(left);
        before.retainAll(unsettled);
      }
      Set<BlockIds> blocks = new HashSet<>();
      before.forEach(staged -> staged.addBlocks(blocks));
      return blocks.size();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes nothing more, and ends what was accepted, at the latest with the deadline of a task. Idempotent;
   * one at a time. An interrupt does not hurry it, as device and memory would then be kept for ever.
   */
  void close() {
    if (!closeBegun) {
      closeBegun = true;
      // Bounded as it is, it is done by a thread that is not interrupted.
      Thread.Builder closer = Thread.ofPlatform().daemon().name("ucm-nfs-staging-close-0");
      ThreadEnd.await(List.of(closer.start(this::closeNow)));
    }
  }

  private void closeNow() {
    try {
      awaitEnd().forEach(this::timeOut);
      threadsEnded = device.closeThreads(JOIN);
      timeouts.shutdownNow();
    } catch (InterruptedException | RuntimeException e) {
      LOG.error("Nfs failed to end what was under way between device and files", e);
    }
  }

  /** Takes nothing more, and waits for what was accepted; returns what has not ended. */
  private List<StagedTransfer> awaitEnd() throws InterruptedException {
    long left = config.timeoutNanos();
    lock.lock();
    try {
      closed = true;
      while (left > 0 && !(open.isEmpty() && unsettled.isEmpty())) {
        left = changed.awaitNanos(left);
      }
      return List.copyOf(open);
    } finally {
      lock.unlock();
    }
  }

  /** Gives device and memory back, once; the files are closed. One at a time. */
  void release() {
    if (released) {
      return;
    }
    released = true;
    StagingBuffers known = buffers;
    if (threadsEnded) {
      device.release();
    }
    if (known == null) {
      return;
    }
    if (threadsEnded && known.inUse() == 0) {
      known.free();
    } else {
      LOG.warn("Nfs keeps its {}: the device or the file system may still use some of them", known);
    }
  }
}
