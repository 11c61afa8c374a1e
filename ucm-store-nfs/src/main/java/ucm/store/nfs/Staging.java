package ucm.store.nfs;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
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
import ucm.store.file.health.TimeoutScheduler;

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

  private final NfsConfig config;
  private final FileMover files;
  private final LongSupplier clock;
  private final EngineDevice device;
  private final TimeoutScheduler timeouts;
  private final UnsettledDumps unsettled = new UnsettledDumps();
  private final AtomicInteger pumps = new AtomicInteger();

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  // Guarded by lock.
  private @Nullable StagingBuffers buffers;
  private final ArrayDeque<StagedTransfer> waiting = new ArrayDeque<>();
  private final LinkedHashSet<StagedTransfer> undue = new LinkedHashSet<>();
  private int openTasks;
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
    this.timeouts = new TimeoutScheduler(NfsStore.KIND.newThread("timeouts", 0), this::endDue);
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
    LOG.info("{}: {}; device: {}", NfsStore.NAME, buffers == null ? "no buffers" : buffers, device);
  }

  private StagingBuffers allocate() {
    StagingBuffers allocated = StagingBuffers.allocate(config.slots(), config.stride());
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
      // Before others can see it, and so end it.
      task.beforeTerminal(() -> finished(staged));
      enter(staged);
      timeouts.checkIn(config.timeoutNanos());
      pump();
    }
    return task;
  }

  private void enter(StagedTransfer staged) {
    int shards = staged.transfer.shardCount();
    lock.lock();
    try {
      if (closed) {
        throw new StoreClosedException(NfsStore.NAME);
      }
      if (openTasks >= config.waitingQueueDepth()) {
        throw new QueueFullException("Nfs tasks", openTasks, CommonKeys.WAITING_QUEUE_DEPTH.name());
      }
      // One that is larger than the bound may be under way alone.
      if (openShards > 0 && (long) openShards + shards > config.runningQueueDepth()) {
        throw new QueueFullException(
            "Nfs shards", openShards, CommonKeys.RUNNING_QUEUE_DEPTH.name());
      }
      openTasks++;
      openShards += shards;
      undue.add(staged);
      waiting.add(staged);
      if (staged.isDump) {
        unsettled.add(staged);
      }
    } finally {
      lock.unlock();
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
      int count = chunkEnd(staged, first) - first;
      int[] slots = buffers().take(count);
      if (slots.length == 0) {
        return null;
      }
      staged.taken += count;
      if (staged.taken == staged.transfer.shardCount()) {
        waiting.remove();
      }
      return staged.isDump
          ? new DumpChunk(this, staged, first, slots)
          : new LoadChunk(this, staged, first, slots);
    } finally {
      lock.unlock();
    }
  }

  /** Where a chunk ends: whole blocks if they are not too large. */
  private int chunkEnd(StagedTransfer staged, int first) {
    long bytes = Math.max(CHUNK_BYTES, config.layout().blockSize());
    int share = Math.max(1, buffers().slots() / CHUNKS_AT_ONCE);
    int most = Math.clamp(bytes / config.layout().shardSize(), 1, share);
    int shards = staged.transfer.shardCount();
    int limit = Math.min(shards, first + most);
    int end = limit;
    while (end > first && end < shards && staged.continuesBlock(end)) {
      end--;
    }
    return end == first ? limit : end;
  }

  private void finished(StagedTransfer staged) {
    lock.lock();
    try {
      undue.remove(staged);
      openTasks--;
      openShards -= staged.transfer.shardCount();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Some shards of a dump, begun by the caller, are the files' now, or have {@link #failed}. */
  void settled(StagedTransfer staged, int shards) {
    unsettled.settled(staged, shards);
  }

  /** A shard of a dump will not come to the files. */
  void failed(Transfer transfer, int shard, Throwable cause) {
    files.dumpFailed(transfer.ids().high(shard), transfer.ids().low(shard), cause);
  }

  /** Ends the tasks whose time has passed; returns the nanoseconds until the next one is due. */
  private long endDue() {
    while (true) {
      StagedTransfer first;
      lock.lock();
      try {
        if (undue.isEmpty()) {
          return Long.MAX_VALUE;
        }
        first = undue.getFirst();
        long left = first.deadlineNanos - clock.getAsLong();
        if (left > 0) {
          return left;
        }
        undue.remove(first);
      } finally {
        lock.unlock();
      }
      timeOut(first);
    }
  }

  private void timeOut(StagedTransfer staged) {
    lock.lock();
    try {
      staged.taken = staged.transfer.shardCount();
      waiting.remove(staged);
    } finally {
      lock.unlock();
    }
    StoreException cause = staged.timeout();
    int begun = 0;
    for (int shard = 0; shard < staged.transfer.shardCount(); shard++) {
      if (staged.begin(shard)) {
        begun++;
        if (staged.isDump) {
          failed(staged.transfer, shard, cause);
        }
        staged.end(shard, ShardOutcome.EXPIRED, cause);
      }
    }
    if (staged.isDump && begun > 0) {
      settled(staged, begun);
    }
    pump();
  }

  /**
   * Waits until the files have all dumps accepted so far, or these have failed.
   *
   * @return how many blocks are still on their way to the files
   */
  long flush(Duration timeout) throws InterruptedException {
    return unsettled.await(timeout);
  }

  /**
   * Takes nothing more, and ends what was accepted, at the latest with the deadline of a task. Idempotent;
   * one at a time. An interrupt does not hurry it, as device and memory would then be kept for ever; the
   * flag is set when it returns.
   */
  void close() {
    if (closeBegun) {
      return;
    }
    closeBegun = true;
    // Bounded as it is, it is done by a thread that is not interrupted.
    Thread closer =
        Thread.ofPlatform().daemon().name("ucm-nfs-staging-close-0").start(this::closeNow);
    ThreadEnd.await(List.of(closer));
  }

  private void closeNow() {
    awaitEnd();
    List<StagedTransfer> late;
    lock.lock();
    try {
      late = new ArrayList<>(undue);
      undue.clear();
    } finally {
      lock.unlock();
    }
    try {
      late.forEach(this::timeOut);
      threadsEnded = device.closeThreads(JOIN);
      timeouts.close();
    } catch (RuntimeException e) {
      LOG.error("Nfs failed to end what was under way between device and files", e);
    }
  }

  /** Takes nothing more, and waits for what was accepted. */
  private void awaitEnd() {
    long left = config.timeoutNanos();
    lock.lock();
    try {
      closed = true;
      while (left > 0 && openTasks > 0) {
        left = changed.awaitNanos(left);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    } finally {
      lock.unlock();
    }
    awaitSettled(left);
  }

  private void awaitSettled(long nanos) {
    try {
      unsettled.await(Duration.ofNanos(Math.max(0, nanos)));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
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
